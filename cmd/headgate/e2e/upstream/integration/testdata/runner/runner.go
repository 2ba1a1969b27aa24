// Package runner stands in for upstream's package of this name, with the same interface. It runs
// the program that HEADGATE_BIN names, and tells it the settings by environment variables. The
// statistics are those that the program prints at /stats.
package runner

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	gostats "github.com/lyft/gostats"

	"github.com/envoyproxy/ratelimit/src/settings"
)

// Runner runs one server.
type Runner struct {
	settings settings.Settings
	process  *process
}

type process struct {
	mu      sync.Mutex
	stopped bool
	cmd     *exec.Cmd
	ended   chan struct{}
}

// NewRunner returns a Runner that has not started.
func NewRunner(s settings.Settings) Runner {
	return Runner{settings: s, process: &process{ended: make(chan struct{})}}
}

// Run starts the program, and returns when it has ended. It panics if the program ends with
// an error.
func (r *Runner) Run() {
	cmd := exec.Command(os.Getenv("HEADGATE_BIN"))
	cmd.Env = append(os.Environ(), environment(r.settings)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := r.process
	defer close(p.ended)
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return
	}
	err := cmd.Start()
	p.cmd = cmd
	p.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", cmd.Path, err))
	}
}

// Stop ends the program by SIGTERM.
func (r *Runner) Stop() {
	p := r.process
	p.mu.Lock()
	p.stopped = true
	if p.cmd == nil || p.cmd.Process == nil {
		p.mu.Unlock()
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.mu.Unlock()
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		panic("the program did not end within 20 s of SIGTERM")
	}
}

// environment is each setting that differs from its default, as a variable.
func environment(s settings.Settings) []string {
	var env []string
	if s.ConfigType != "FILE" {
		s.RuntimePath = "none" // so that no file stands in for what comes by xDS
	}
	v := reflect.ValueOf(s)
	for i := 0; i < v.NumField(); i++ {
		tag := v.Type().Field(i).Tag
		name := tag.Get("envconfig")
		if name == "" {
			continue
		}
		value, def := text(v.Field(i)), tag.Get("default")
		if value != def && value != zero(v.Field(i), def) {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// zero is the text of a zero value without a default.
func zero(v reflect.Value, def string) string {
	if def != "" && def != "0" {
		return def
	}
	return text(reflect.Zero(v.Type()))
}

func text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case []string:
		return strings.Join(x, ",")
	case map[string]string:
		var pairs []string
		for key, value := range x {
			pairs = append(pairs, key+":"+value)
		}
		sort.Strings(pairs)
		return strings.Join(pairs, ",")
	case time.Duration:
		return x.String()
	}
	return fmt.Sprint(v.Interface())
}

// GetStatsStore returns the statistics of the program.
func (r *Runner) GetStatsStore() gostats.Store {
	return store{
		noStats: gostats.NewStore(gostats.NewNullSink(), false),
		url:     fmt.Sprintf("http://localhost:%d/stats", r.settings.DebugPort),
	}
}

// store reads what the tests ask for. Its other methods are those of a store without statistics.
type store struct {
	noStats
	url string
}

type noStats = gostats.Store

// Flush does nothing: the program counts at once.
func (s store) Flush() {}

// NewCounter returns the counter of a name, with its value of now.
func (s store) NewCounter(name string) gostats.Counter {
	c := s.noStats.NewCounter(name)
	c.Set(s.value(name))
	return c
}

// NewCounterWithTags is NewCounter; the names at /stats have no tags.
func (s store) NewCounterWithTags(name string, tags map[string]string) gostats.Counter {
	return s.NewCounter(name)
}

// NewGauge returns the gauge of a name, with its value of now.
func (s store) NewGauge(name string) gostats.Gauge {
	g := s.noStats.NewGauge(name)
	g.Set(s.value(name))
	return g
}

// value reads one line, NAME: VALUE. What has not been counted yet is 0.
func (s store) value(name string) uint64 {
	resp, err := http.Get(s.url)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(string(page), "\n") {
		if rest, ok := strings.CutPrefix(line, name+": "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 64)
			if err != nil {
				panic(err)
			}
			return n
		}
	}
	return 0
}
