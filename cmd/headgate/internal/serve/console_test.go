package serve

import (
	"bufio"
	"cmp"
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
	if o.Files == nil {
		o.Files = []string{write(t, filepath.Join(t.TempDir(), "rules.yaml"), consoleRules)}
	}
	o.HTTP, o.GRPC, o.Debug = "127.0.0.1:0", Off, cmp.Or(o.Debug, Off)
	o.Grace = DefaultGrace
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
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
func (r *running) get(path string) (status int, text string) {
	r.t.Helper()
	return r.do(http.MethodGet, path, "")
}

// ask asks about descriptors, and returns the status.
func (r *running) ask(body string) (status int) {
	r.t.Helper()
	status, _ = r.do(http.MethodPost, "/json", body)
	return status
}

func (r *running) do(method, path, body string) (status int, text string) {
	r.t.Helper()
	resp := r.open(method, path, body)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (r *running) open(method, path, body string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+consoleToken) // if the file has it
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

// shown is what the console shows, as far as tests read it.
type shown struct {
	Alone     string     `json:"alone"`
	Instances []struct{} `json:"instances"`
	Store     struct {
		State string `json:"state"`
	} `json:"store"`
	Rules []struct {
		Name     string  `json:"name"`
		Denied   float64 `json:"denied"`
		Degraded float64 `json:"degraded"`
	} `json:"rules"`
}

// stream is a viewer.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (r *running) stream() *stream {
	r.t.Helper()
	resp := r.open(http.MethodGet, "/console/api/events", "")
	r.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%d", resp.StatusCode)
	}
	s := &stream{r.t, bufio.NewScanner(resp.Body)}
	s.lines.Buffer(nil, 1<<22)
	return s
}

// until reads states until one is as wanted.
func (s *stream) until(what string, wanted func(shown) bool) {
	s.t.Helper()
	last, isState := shown{}, false
	for deadline := time.Now().Add(time.Minute); s.lines.Scan() && time.Now().Before(deadline); {
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
		r.ask(`{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"<b>"}]}]}`)
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
	if status, _ := r.get("/console/api/events"); status != http.StatusServiceUnavailable {
		t.Errorf("a viewer beyond half of the connections: %d", status)
	}
	idle := make([]net.Conn, 8)
	for i := range idle {
		idle[i], _ = new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
		if status, _ := r.get("/-/healthy"); status != http.StatusOK {
			t.Errorf("%d", status)
		}
	}
	for _, s := range streams {
		s.until("a viewer", func(shown) bool { return true })
		s.until("a viewer", func(shown) bool { return true })
	}
	for _, c := range idle { // for new connections the end waits 5 seconds
		if c != nil {
			c.Close()
		}
	}
	started := time.Now()
	r.end()
	<-r.done
	if took := time.Since(started); took > DefaultGrace/2 {
		t.Errorf("the end took %s", took)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
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
	if status, _ := r.get("/console/"); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	if _, text := r.get("/"); strings.Contains(text, "console") {
		t.Errorf("%s", text)
	}
	r.get("/auth/api")
	status := r.ask(`{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"hits_addend":5}]}`)
	if status != http.StatusTooManyRequests {
		t.Errorf("%d", status)
	}
}
