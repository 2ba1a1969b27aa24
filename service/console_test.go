package service

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// running is a server that serves HTTP.
type running struct {
	*server

	t    *testing.T
	url  string
	end  context.CancelFunc
	done chan struct{} // closed when it has ended
}

const consoleRules = `
rules: [{name: api, match: {path: /api}, key: ip, limits: 3/h}]
domains: [{domain: d, descriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 1}}]}]
`

// serveHTTP starts a server.
func serveHTTP(t *testing.T, o Options) *running {
	t.Helper()
	o.Files = []string{write(t, filepath.Join(t.TempDir(), "rules.yaml"), consoleRules)}
	o.HTTP, o.GRPC, o.Debug = "127.0.0.1:0", Off, Off
	o.Log, o.Grace = slog.New(slog.DiscardHandler), DefaultGrace
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	s, err := newServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	if err := s.open(ctx); err != nil {
		t.Fatal(err)
	}
	r := &running{s, t, "http://" + s.listeners[0].on.Addr().String(), end, make(chan struct{})}
	go func() {
		defer close(r.done)
		if err := s.serve(ctx); err != nil {
			t.Error(err)
		}
		s.close()
	}()
	t.Cleanup(func() { end(); <-r.done })
	return r
}

// get asks for a path on a connection of its own.
func (r *running) get(path string) *http.Response {
	r.t.Helper()
	return r.getBy(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, path)
}

func (r *running) getBy(client *http.Client, path string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// shown is what the console shows, as far as tests read it.
type shown struct {
	Alone     string
	Instances []struct{ Name, Store string }
	Store     struct{ State string }
	Rules     []struct {
		Name             string
		Denied, Degraded float64
	}
}

// stream is a viewer.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (r *running) stream() *stream {
	r.t.Helper()
	resp := r.get("/console/api/events")
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		r.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	s := &stream{r.t, bufio.NewScanner(resp.Body)}
	s.lines.Buffer(nil, 1<<22)
	return s
}

// until reads states until one is as wanted.
func (s *stream) until(what string, wanted func(shown) bool) {
	s.t.Helper()
	last, isState := shown{}, false
	for deadline := time.Now().Add(20 * time.Second); s.lines.Scan() && time.Now().Before(deadline); {
		data, isData := strings.CutPrefix(s.lines.Text(), "data: ")
		if isData && isState {
			last = shown{}
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				s.t.Fatal(err)
			}
			if wanted(last) {
				return
			}
		}
		isState = s.lines.Text() == "event: state"
	}
	s.t.Fatalf("%s: not shown; the last state is %+v, error %v", what, last, s.lines.Err())
}

// While Redis is away, an instance shows what it decides itself, and that the store is down. When it
// is back, so are the others.
func TestConsoleWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	proxy := redistest.StartProxy(t, redis.Addr)
	o := Options{Store: "redis://" + proxy.Addr}
	r, _ := serveHTTP(t, o), serveHTTP(t, o)
	s := r.stream()
	s.until("the fleet", func(s shown) bool {
		return len(s.Instances) == 2 && s.Store.State == "up" && s.Alone == ""
	})
	proxy.Cut(1)
	s.until("the store is down", func(s shown) bool {
		r.get("/auth/api")
		return s.Store.State == "down" && s.Alone != "" && len(s.Instances) == 1 &&
			s.Rules[0].Name == "api" && s.Rules[0].Denied > 0 && s.Rules[0].Degraded > 0
	})
	proxy.Heal()
	s.until("the fleet is back", func(s shown) bool {
		return len(s.Instances) == 2 && s.Store.State != "down" && s.Alone == ""
	})
}

// Decisions of both ways in reach the console, with the keys that were denied.
func TestConsoleSeesAllWaysIn(t *testing.T) {
	t.Parallel()
	r := serveHTTP(t, Options{})
	s := r.stream()
	for range 9 {
		r.get("/auth/api")
		resp, err := http.Post(r.url+"/json", "application/json", strings.NewReader(
			`{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"<b>"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	s.until("both", func(s shown) bool {
		denied := map[string]bool{}
		for _, rule := range s.Rules {
			denied[rule.Name] = rule.Denied > 0
		}
		return denied["api"] && denied["d/k"]
	})
}

// Viewers keep their connections while others come and go, and leave places for them. The end of
// the server does not wait for them, and nothing is left of them.
func TestViewersAndConnections(t *testing.T) {
	r := serveHTTP(t, Options{Connections: 6})
	streams := []*stream{r.stream(), r.stream(), r.stream()}
	if resp := r.get("/console/api/events"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a viewer beyond half of the connections: %d", resp.StatusCode)
	}
	idle := make([]net.Conn, 8)
	for i := range idle {
		idle[i], _ = net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if resp := r.get("/-/healthy"); resp.StatusCode != http.StatusOK {
			t.Errorf("%d", resp.StatusCode)
		}
	}
	for _, s := range streams {
		s.until("a viewer", func(shown) bool { return true })
		s.until("a viewer", func(shown) bool { return true })
	}
	started := time.Now()
	r.end()
	<-r.done
	if took := time.Since(started); took > DefaultGrace/2 {
		t.Errorf("the end took %s", took)
	}
	for _, c := range idle {
		if c != nil {
			c.Close()
		}
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stacks := make([]byte, 1<<20)
		text := string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(text, "internal/console.") && !strings.Contains(text, "http.(*conn)") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("goroutines are left:\n%s", text)
		}
	}
}

// With --console off there is none.
func TestNoConsole(t *testing.T) {
	t.Parallel()
	r := serveHTTP(t, Options{NoConsole: true})
	if resp := r.get("/console/"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("%d", resp.StatusCode)
	}
	body, _ := io.ReadAll(r.get("/").Body)
	if strings.Contains(string(body), "console") {
		t.Errorf("%s", body)
	}
	r.get("/auth/api")
	resp, err := http.Post(r.url+"/json", "application/json", strings.NewReader(
		`{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"hits_addend":5}]}`))
	if err != nil || resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%v %v", resp, err)
	}
}
