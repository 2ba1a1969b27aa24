//go:build clients

package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

const (
	hammerCallers = 8  // of each process
	hammerDenials = 20 // of each group, after which a caller ends
	hammerKills   = 10 // of processes, each of which is started again
)

// hammerRequest is a limit, a key and a cost.
type hammerRequest [3]any

// hammered are the groups that all processes take, and how often each can be granted. No tokens
// come back while the test runs.
var hammered = []struct {
	group []hammerRequest
	most  int64
}{
	{[]hammerRequest{{"4000/365d", "bucket", 1}}, 4000},
	{[]hammerRequest{{"4000/365d stepped", "stepped", 1}}, 4000},
	{[]hammerRequest{{"4000/365d fixed-window", "fixed", 2}}, 2000},
	{[]hammerRequest{{"140/365d sliding-window", "window", 1}}, 140},
	{[]hammerRequest{{"600/365d sliding-log", "log", 1}}, 600},
	{[]hammerRequest{{"4000/year", "calendar", 1}}, 4000},
	{[]hammerRequest{{"3000/365d", "a", 1}, {"2000/365d fixed-window", "b", 1}}, 2000},
	{[]hammerRequest{{"2000/365d fixed-window", "c", 1}, {"9000/year", "c", 3}}, 2000},
}

// Processes in Go, Python and Node take from the same keys at once, while scripts are flushed and
// processes killed: together they are granted the limits, and each of them something.
func TestHammer(t *testing.T) {
	if addr := os.Getenv("HAMMER_CHILD"); addr != "" {
		hammerInGo(t, addr)
		return
	}
	for _, kills := range []int64{0, hammerKills} {
		t.Run(fmt.Sprintf("%d kills", kills), func(t *testing.T) { hammer(t, kills) })
	}
}

type hammerRun struct {
	t       *testing.T
	env     []string
	granted []atomic.Int64 // by group
	all     atomic.Int64
	events  chan struct{} // after each hundred grants
	running sync.WaitGroup
}

func hammer(t *testing.T, kills int64) {
	server := redistest.Start(t)
	var groups [][]hammerRequest
	var most int64
	for _, h := range hammered {
		groups, most = append(groups, h.group), most+h.most
	}
	text, err := json.Marshal(groups)
	if err != nil {
		t.Fatal(err)
	}
	python, err := filepath.Abs(python)
	if err != nil {
		t.Fatal(err)
	}
	node, err := filepath.Abs(node)
	if err != nil {
		t.Fatal(err)
	}
	h := &hammerRun{
		t: t, granted: make([]atomic.Int64, len(hammered)), events: make(chan struct{}, most),
		env: append(os.Environ(), "HEADGATE_REDIS="+server.Addr, "HAMMER_GROUPS="+string(text),
			"HAMMER_CALLERS="+strconv.Itoa(hammerCallers), "HAMMER_CHILD="+server.Addr,
			"HAMMER_DENIALS="+strconv.Itoa(hammerDenials), "PYTHONPATH="+python),
	}
	kinds := [][]string{
		{os.Args[0], "-test.run=^TestHammer$"},
		{pythonPath(t), "testdata/hammer.py", "threads"},
		{pythonPath(t), "testdata/hammer.py", "asyncio"},
		{"node", "testdata/hammer.mjs", "redis", node},
		{"node", "testdata/hammer.mjs", "ioredis", node},
	}
	shares := make([]atomic.Int64, len(kinds))
	children := make([]*child, len(kinds))
	for i, args := range kinds {
		children[i] = h.start(args, &shares[i])
	}
	for _, c := range children {
		<-c.ready
	}
	for _, c := range children {
		c.begin()
	}
	done := make(chan struct{})
	go func() { defer close(done); h.running.Wait() }()
	killed := int64(0)
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-h.events:
			if _, err := server.Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
				t.Error(err)
			}
			if killed < kills && h.all.Load() > most*(killed+1)/(kills+5) {
				i := int(killed) % len(kinds)
				children[i].kill()
				children[i] = h.start(kinds[i], &shares[i])
				children[i].begin()
				killed++
			}
		}
	}
	for i, want := range hammered {
		got := h.granted[i].Load()
		if got > want.most || got < want.most-killed*hammerCallers {
			t.Errorf("%v: %d granted; want %d, less up to %d of those killed", want.group, got,
				want.most, killed*hammerCallers)
		}
	}
	if killed != kills {
		t.Errorf("%d processes were killed; want %d", killed, kills)
	}
	for i := range kinds {
		if n := shares[i].Load(); n == 0 {
			t.Errorf("%v was granted nothing", kinds[i])
		} else {
			t.Logf("%d of %d by %s", n, most, filepath.Base(strings.Join(kinds[i][:min(3, len(kinds[i]))], " ")))
		}
	}
	h.nothingLeft(server.Addr)
}

// nothingLeft checks that one request of each group is exhausted.
func (h *hammerRun) nothingLeft(addr string) {
	store, err := redisstore.Open("redis://" + addr + redistest.Patient)
	if err != nil {
		h.t.Fatal(err)
	}
	defer store.Close()
	for _, want := range hammered {
		left := int64(1 << 60)
		for _, r := range want.group {
			limit, _ := headgate.ParseLimit(r[0].(string))
			d, err := store.Take(h.t.Context(), headgate.Request{Key: r[1].(string), Limit: limit})
			if err != nil {
				h.t.Fatal(err)
			}
			left = min(left, d.Remaining)
		}
		if left != 0 {
			h.t.Errorf("%v: %d left", want.group, left)
		}
	}
}

// child is a process that takes.
type child struct {
	cmd    *exec.Cmd
	in     io.Writer
	ready  chan struct{}
	killed atomic.Bool
}

func (c *child) begin() { fmt.Fprintln(c.in) }

func (c *child) kill() {
	c.killed.Store(true)
	_ = c.cmd.Process.Kill()
}

func (h *hammerRun) start(args []string, share *atomic.Int64) *child {
	cmd := exec.CommandContext(h.t.Context(), args[0], args[1:]...) //nolint:gosec // of this test
	cmd.Env, cmd.Stderr = h.env, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	c := &child{cmd: cmd, in: in, ready: make(chan struct{})}
	h.running.Go(func() {
		ready, done := false, false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch line := lines.Text(); line {
			case "ready":
				ready = true
				close(c.ready)
			case "done", "PASS":
				done = true
			default:
				i, err := strconv.Atoi(line)
				if err != nil || i < 0 || i >= len(h.granted) {
					h.t.Errorf("%v prints %q", args, line)
					continue
				}
				h.granted[i].Add(1)
				share.Add(1)
				if h.all.Add(1)%100 == 0 {
					h.events <- struct{}{}
				}
			}
		}
		if !ready {
			close(c.ready)
		}
		err := cmd.Wait()
		if !c.killed.Load() && (err != nil || !done) {
			h.t.Errorf("%v: %v", args, err)
		}
	})
	return c
}

// hammerInGo is one of the processes.
func hammerInGo(t *testing.T, addr string) {
	store, err := redisstore.Open("redis://" + addr + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var groups [][]headgate.Request
	for _, h := range hammered {
		var rs []headgate.Request
		for _, r := range h.group {
			limit, err := headgate.ParseLimit(r[0].(string))
			if err != nil {
				t.Fatal(err)
			}
			rs = append(rs, headgate.Request{Key: r[1].(string), Limit: limit, Cost: int64(r[2].(int))})
		}
		groups = append(groups, rs)
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	var callers sync.WaitGroup
	for range hammerCallers {
		callers.Go(func() {
			denials := make([]int, len(groups))
			for ended := 0; ended < len(groups); {
				for i, rs := range groups {
					ds := make([]headgate.Decision, len(rs))
					if err := store.TakeAll(t.Context(), rs, ds); err != nil {
						t.Error(err)
						return
					}
					if headgate.Granted(rs, ds) {
						_, _ = os.Stdout.WriteString(strconv.Itoa(i) + "\n")
					} else if denials[i]++; denials[i] == hammerDenials {
						ended++
					}
				}
			}
		})
	}
	callers.Wait()
}
