package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// budget is a rule of n tokens that do not come back during a test.
func budget(n int64) rules.Rule {
	return rules.Rule{
		Name: "tokens", Permits: 1000, Limits: []headgate.Limit{headgate.FixedWindow(n, 365*24*time.Hour)},
		Cost: rules.Cost{Tokens: &rules.TokenCost{Estimate: 200, Input: 1, Output: 4}},
	}
}

// chat sends the body of a request to a model.
func chat(t *testing.T, url string, body io.Reader) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return reply{res, string(b)}
}

const done = `{"usage":{"prompt_tokens":10,"completion_tokens":5}}` // costs 30

func TestTokenCost(t *testing.T) {
	var asked atomic.Int64
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		got, _ := io.ReadAll(r.Body)
		if r.Header.Get("Accept-Encoding") != "identity" || !strings.HasPrefix(string(got), "{") ||
			!strings.HasSuffix(string(got), "}") {
			t.Errorf("the server got %q, %v", got, r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/stream":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {}\n\ndata: "+done+"\n\ndata: [DONE]\n\n")
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, done)
			_ = z.Close()
		case "/none":
			_, _ = io.WriteString(w, "{}")
		case "/bad":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{}}`)
		case "/bad/used":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, done)
		case "/cut":
			_, _ = io.WriteString(w, done[:len(done)-1])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, done)
		}
	}, "", budget(1000))
	const (
		bounded   = `{"max_tokens":20}` // 17 bytes are 5 tokens: 85
		unbounded = `{}`                // 200
	)
	left := int64(1000)
	for _, c := range []struct {
		path, body string
		cost       int64
	}{
		{"/", bounded, 30},
		{"/", unbounded, 30},
		{"/stream", bounded, 30},
		{"/gzip", bounded, 30},
		{"/none", bounded, 85},
		{"/none", unbounded, 200},
		{"/bad", unbounded, 0},
		{"/bad/used", unbounded, 30},
		{"/cut", unbounded, 200},
	} {
		r := chat(t, e.url+c.path, strings.NewReader(c.body))
		left -= c.cost
		until(t, c.path, func() bool { return e.left(t, "tokens", "all") == left })
		if c.path == "/" && r.text != done {
			t.Errorf("the client got %q", r.text)
		}
	}
	// A denial comes before the server is asked, and an estimate is at most what the limit can hold.
	asked.Store(0)
	r := chat(t, e.url, strings.NewReader(`{"max_tokens":9007199254740991}`))
	if r.StatusCode != http.StatusTooManyRequests || asked.Load() != 0 ||
		r.Header.Get("Retry-After") == "" || e.left(t, "tokens", "all") != left {
		t.Errorf("%d %v, %d requests", r.StatusCode, r.Header, asked.Load())
	}
	small := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, done)
	}, "", budget(50))
	if r := chat(t, small.url, strings.NewReader(unbounded)); r.StatusCode != http.StatusOK {
		t.Errorf("a limit below the estimate: %d", r.StatusCode)
	}
	until(t, "settled", func() bool { return small.left(t, "tokens", "all") == 20 })
}

// Without a server, nothing is used. What is no rule of tokens passes as it came.
func TestTokenCostElsewhere(t *testing.T) {
	nobody := httptest.NewServer(nil)
	nobody.Close()
	e := serveTarget(t, nobody.URL, "", budget(1000))
	if r := chat(t, e.url, strings.NewReader("{}")); r.StatusCode != http.StatusBadGateway {
		t.Errorf("%d", r.StatusCode)
	}
	until(t, "the estimate is given back", func() bool { return e.left(t, "tokens", "all") == 1000 })

	off := budget(1000)
	off.Mode = rules.Off
	e = serve(t, echo, "", off)
	if h := echoed(t, get(t, e.url, "Accept-Encoding: br")); h.Get("Accept-Encoding") != "br" {
		t.Errorf("%v", h)
	}

	shadow := budget(1000)
	shadow.Mode = rules.Shadow
	e = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, done)
	}, "", shadow, rules.Rule{
		Name: "field", Limits: per(1000), Cost: rules.Cost{ResponseHeader: "X-Cost", Estimate: 500},
	})
	chat(t, e.url, strings.NewReader("{}"))
	until(t, "shadow", func() bool { return e.left(t, "tokens", "all") == 970 })
	until(t, "a field that is missing", func() bool { return e.left(t, "field", "all") == 500 })
}

// Tokens of a response that does not count cost nothing, even if it reports them. Others cost what
// they do without count, and a request that no response answers costs its estimate.
func TestTokenCostAndOutcome(t *testing.T) {
	for _, mode := range []rules.Mode{rules.Enforce, rules.Shadow} {
		rule := budget(10_000)
		rule.Mode, rule.Count = mode, rules.Count{Statuses: []int{2, 429}}
		e := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/used":
				_, _ = io.WriteString(w, done)
			case "/none":
				_, _ = io.WriteString(w, "{}")
			case "/error/used":
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, done)
			case "/busy":
				w.WriteHeader(http.StatusTooManyRequests)
			case "/busy/used":
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, done)
			default:
				panic(http.ErrAbortHandler)
			}
		}, "", rule)
		left := int64(10_000)
		for _, c := range []struct {
			path string
			cost int64
		}{
			{"/used", 30}, {"/none", 200}, {"/error/used", 0}, {"/busy", 0}, {"/busy/used", 30}, {"/cut", 200},
		} {
			chat(t, e.url+c.path, strings.NewReader("{}"))
			left -= c.cost
			until(t, c.path, func() bool { return e.permits.Keys() == 0 })
			if got := e.left(t, "tokens", "all"); got != left {
				t.Errorf("%v %s: %d remain; want %d", mode, c.path, got, left)
				left = got
			}
		}
	}
}

// The estimate of a cost in a field stays after a hang-up, and is given back for a failure.
func TestEstimateOfField(t *testing.T) {
	arrived := make(chan struct{}, 1)
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bad":
			w.WriteHeader(http.StatusNotFound)
		case "/wait":
			_ = http.NewResponseController(w).Flush()
			arrived <- struct{}{}
			<-r.Context().Done()
		default:
			w.Header().Set("X-Cost", strings.TrimPrefix(r.URL.Path, "/"))
		}
	}, "", rules.Rule{
		Name: "field", Limits: per(10000), Cost: rules.Cost{ResponseHeader: "X-Cost", Estimate: 500},
	})
	left := int64(10000)
	for _, c := range []struct {
		path string
		cost int64
	}{{"/20", 20}, {"/0", 0}, {"/700", 700}, {"/bad", 0}} {
		get(t, e.url+c.path)
		left -= c.cost
		until(t, c.path, func() bool { return e.left(t, "field", "all") == left })
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.DefaultTransport.RoundTrip(request(ctx, t, e.url+"/wait"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	<-arrived
	if got := e.left(t, "field", "all"); got != left-500 {
		t.Errorf("%d remain; want %d", got, left-500)
	}
	cancel()
	_, _ = io.Copy(io.Discard, r.Body)
	if got := e.left(t, "field", "all"); got != left-500 {
		t.Errorf("after a hang-up, %d remain; want %d", got, left-500)
	}
}

// 50 streams share a budget of n tokens: what they use in all is at most n, and what exceeded
// their estimates.
func TestTokenBudgetIsNeverOver(t *testing.T) { //nolint:gocognit // one run after the other
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 17))
		n := 500 + rng.Int64N(5000)
		type call struct{ estimate, used, most int64 }
		calls := make([]call, 50)
		for i := range calls {
			most := 1 + rng.Int64N(100)
			body := fmt.Sprintf(`{"max_tokens":%d,"call":%d}`, most, i)
			c := call{most: most, estimate: min(n, 4*most+int64(len(body)+3)/4)}
			c.used = rng.Int64N(c.estimate + 1)
			if seed%2 == 1 && rng.IntN(4) == 0 {
				c.used += rng.Int64N(300)
			}
			calls[i] = c
		}
		var used, exceeded, charged, asked atomic.Int64
		e := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			var i int
			b, _ := io.ReadAll(r.Body)
			_, number, _ := bytes.Cut(b, []byte("call"))
			if _, err := fmt.Sscanf(string(number), `":%d}`, &i); err != nil {
				t.Error(err)
			}
			c := calls[i]
			used.Add(c.used)
			exceeded.Add(max(c.used-c.estimate, 0))
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"choices\":[]}\n\n")
			_ = http.NewResponseController(w).Flush()
			if i%5 == 0 { // this client hangs up
				charged.Add(c.estimate)
				<-r.Context().Done()
				return
			}
			charged.Add(c.used)
			_, _ = fmt.Fprintf(w, "data: {\"usage\":{\"prompt_tokens\":%d}}\n\ndata: [DONE]\n\n", c.used)
		}, "", budget(n))
		var all sync.WaitGroup
		for i, c := range calls {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				body := fmt.Sprintf(`{"max_tokens":%d,"call":%d}`, c.most, i)
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if i%5 == 0 && res.StatusCode == http.StatusOK {
					_, _ = bufio.NewReader(res.Body).ReadString('\n')
					cancel()
				}
				_, _ = io.Copy(io.Discard, res.Body)
			})
		}
		all.Wait()
		until(t, "settled", func() bool {
			return e.left(t, "tokens", "all") == max(n-charged.Load(), 0)
		})
		if used.Load() > n+exceeded.Load() || asked.Load() == 0 || asked.Load() == 50 && used.Load() > n {
			t.Errorf("%d: %d of %d used in %d calls, %d above the estimates", seed, used.Load(), n,
				asked.Load(), exceeded.Load())
		}
	}
}

// A client that hangs up pays at least the estimate, wherever it does.
func TestHangUpAtEachByte(t *testing.T) {
	content, err := os.ReadFile("../../../../../internal/usage/testdata/anthropic.sse")
	if err != nil {
		t.Fatal(err)
	}
	var cut atomic.Int64
	left := int64(1e9)
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(content[:cut.Load()])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, "", budget(1e9))
	for n := 1; n < len(content); n += 7 {
		cut.Store(int64(n))
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = res.Body.Close()
		// 2095 tokens of input, and 248 for a cache, are known from the first event on.
		until(t, "settled", func() bool { return e.permits.Keys() == 0 })
		used := left - e.left(t, "tokens", "all")
		if used != 200 && used != 2343+4 && used != 2343+4*503 {
			t.Errorf("a hang-up after %d bytes costs %d", n, used)
		}
		left -= used
	}
}

// filler is a body of so many bytes.
type filler struct{ left int64 }

func (f *filler) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), f.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	f.left -= n
	return int(n), nil
}

// 100 MB in both directions pass in constant memory, and unchanged.
func TestLargeBodies(t *testing.T) {
	const size = 100e6
	var got int64
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var begin [14]byte
		_, _ = io.ReadFull(r.Body, begin[:])
		got, _ = io.Copy(io.Discard, r.Body)
		if string(begin[:]) != `{"max_tokens":` {
			t.Errorf("%q", begin)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"a":"`)
		_, _ = io.Copy(w, &filler{size})
		_, _ = io.WriteString(w, `",`+done[1:])
	}, "", budget(1e9))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const begin = `{"max_tokens":7,"a":"`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url,
		io.MultiReader(strings.NewReader(begin), &filler{size}, strings.NewReader(`"}`)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answered, err := io.Copy(io.Discard, res.Body)
	runtime.ReadMemStats(&after)
	if err != nil || got != size+int64(len(begin))-14+2 || answered != size+int64(len(done))+7 {
		t.Errorf("%d bytes of the request, %d of the answer, %v", got, answered, err)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 10<<20 {
		t.Errorf("%d bytes were allocated", total)
	}
	until(t, "settled", func() bool { return e.left(t, "tokens", "all") == 1e9-30 })
}

// A body that stops arriving while its beginning is read is bounded as any other.
func TestBodyStallsBeforeItsRule(t *testing.T) {
	app := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }
	bubble(t, app, budget(1000), func(t *testing.T, _ *edge, dial func() net.Conn) {
		conn, started := dial(), time.Now()
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")
		r := next(t, bufio.NewReader(conn))
		if after := time.Since(started); r.StatusCode != http.StatusRequestTimeout ||
			after.Round(time.Second) != defaultStall {
			t.Errorf("%d after %s", r.StatusCode, after)
		}
		synctest.Wait()
	})
}

// A key that has nothing left is denied before its large body arrives. A small one is read.
func TestLargeBodyOfAnExhaustedKey(t *testing.T) {
	bubble(t, echo, budget(10), func(t *testing.T, e *edge, dial func() net.Conn) {
		limit := rules.Named("tokens", budget(10).Limits)[0]
		_, err := e.store.Take(t.Context(), headgate.Request{Key: "all", Limit: limit, Cost: 10})
		if err != nil || e.left(t, "tokens", "all") != 0 {
			t.Fatal(err)
		}
		for _, length := range []string{"Content-Length: 16385", "Transfer-Encoding: chunked"} {
			conn, started := dial(), time.Now()
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\n"+length+"\r\n\r\n")
			r := next(t, bufio.NewReader(conn))
			if after := time.Since(started); r.StatusCode != http.StatusTooManyRequests || after > time.Second {
				t.Errorf("%s: %d after %s", length, r.StatusCode, after)
			}
		}
	})
}

// Parts of a stream pass one by one while their usage is read.
func TestStreamIsNotHeldUp(t *testing.T) {
	app := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "d\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Hour)
		}
	}
	bubble(t, app, budget(1000), func(t *testing.T, _ *edge, dial func() net.Conn) {
		conn := dial()
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		for i, started := range []time.Time{time.Now(), time.Now(), time.Now()} {
			if _, err := io.ReadFull(r.Body, make([]byte, 3)); err != nil ||
				time.Since(started).Round(time.Minute) != time.Duration(i)*time.Hour {
				t.Fatalf("part %d after %s, %v", i, time.Since(started), err)
			}
		}
	})
}

func TestWebsocketUnderTokenCost(t *testing.T) {
	bubble(t, shout, budget(1000), func(t *testing.T, e *edge, dial func() net.Conn) {
		conn := dial()
		_, _ = io.WriteString(conn,
			"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		lines := bufio.NewReader(conn)
		r, err := http.ReadResponse(lines, nil)
		if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v, %v", r, err)
		}
		defer r.Body.Close()
		_, _ = io.WriteString(conn, "one\n")
		if got, err := lines.ReadString('\n'); err != nil || got != "ONE\n" {
			t.Fatalf("%q, %v", got, err)
		}
		_ = conn.Close()
		synctest.Wait()
		if got := e.left(t, "tokens", "all"); got != 800 {
			t.Errorf("%d remain; want 800", got)
		}
	})
}
