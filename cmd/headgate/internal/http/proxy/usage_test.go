package proxy

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/http/bodies"
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
		unbounded = `{}`                // 201
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
		{"/none", unbounded, 201},
		{"/bad", unbounded, 0},
		{"/bad/used", unbounded, 30},
		{"/cut", unbounded, 201},
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
			{"/used", 30}, {"/none", 201}, {"/error/used", 0}, {"/busy", 0}, {"/busy/used", 30}, {"/cut", 201},
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

// hostile are the ways in which ordinary clients use a model, by accident or not. In bodies and
// answers, BOUND is a bound that the server keeps to if the client says it, and USED what was used.
var hostile = map[string]struct {
	media, encoding, body, answer string

	bounded bool // the body bounds the answer, as the server reads it
	leaves  bool // without reading the end of the body
	known   bool // the answer says what it has used
	free    bool // nothing is used
	status  int  // of a refusal
}{
	"honest":                {body: `{"max_tokens":BOUND}`, answer: usedInStream + "data: [DONE]\n\n", bounded: true, known: true},
	"no bound":              {body: `{"messages":"` + long + `"}`, answer: usedInStream + "data: [DONE]\n\n", known: true},
	"no usage":              {body: `{"messages":"` + long + `"}`, answer: "data: {}\n\ndata: [DONE]\n\n"},
	"early close":           {body: `{"max_tokens":BOUND}`, answer: "data: {}\n\n", bounded: true, leaves: true},
	"early close, no bound": {body: `{"messages":"` + long + `"}`, answer: "data: {}\n\n", leaves: true},
	"closes at message_stop": {
		body: `{}`, answer: usedInStream + "data: {\"type\":\"message_stop\"}\n\n", leaves: true, known: true,
	},
	"a bound of another API": {body: `{"max_output_tokens":1}`, answer: "data: {}\n\n", leaves: true},
	"a bound in capitals":    {body: `{"MAX_TOKENS":1}`, answer: "data: {}\n\n", leaves: true},
	"a bound given twice":    {body: `{"max_tokens":1,"max_tokens":null}`, answer: "data: {}\n\n", leaves: true},
	"a hidden bound":         {encoding: "gzip", body: `{"max_tokens":1}`, answer: "data: {}\n\n", leaves: true},
	"a bound in a form":      {media: "text/plain", body: `{"max_tokens":1}`, answer: "data: {}\n\n", leaves: true},
	"background": {
		body: `{"background":true}`, answer: `{"usage":null}`, free: true, status: http.StatusBadRequest,
	},
	"background behind a space": {
		body: ` {"backgroun\u0064":true}`, answer: `{"usage":null}`, free: true, status: http.StatusBadRequest,
	},
	"hidden background": {encoding: "zstd", media: "application/json", body: `{"background":true}`, answer: `{"usage":null}`},
	"websocket":         {free: true, status: http.StatusUpgradeRequired},
	"count_tokens":      {body: `{"messages":"` + long + `"}`, answer: `{"input_tokens":14}`, free: true},
	"overloaded": {
		body: `{"max_tokens":BOUND}`, answer: "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
		free: true, bounded: true,
	},
}

const usedInStream = "data: {\"usage\":{\"prompt_tokens\":USED}}\n\n"

var long = strings.Repeat("long ", 100)

// Clients of all kinds share a budget of n tokens: what they use in all is at most n, and what
// exceeded their reservations. That is nothing if the server keeps to a bound that was believed.
func TestHostileClients(t *testing.T) { //nolint:gocognit // one run after the other
	kinds := slices.Sorted(maps.Keys(hostile))
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 17))
		n := 2000 + rng.Int64N(8000)
		type call struct {
			kind, body, answer string
			reserved, used     int64
		}
		calls := make([]call, 60)
		for i := range calls {
			kind := kinds[rng.IntN(len(kinds))]
			h, most := hostile[kind], 1+rng.Int64N(200)
			c := call{kind: kind, used: rng.Int64N(2000)}
			c.body = strings.ReplaceAll(h.body, "BOUND", strconv.FormatInt(most, 10))
			answer := int64(200)
			if h.bounded {
				answer = 4 * most
				c.used = rng.Int64N(answer)
			}
			c.reserved = min(n, int64(len(c.body)+3)/4+answer)
			if h.free {
				c.used = 0
			}
			c.answer = strings.ReplaceAll(h.answer, "USED", strconv.FormatInt(c.used, 10))
			calls[i] = c
		}
		var used, exceeded, charged, asked atomic.Int64
		rule := budget(n)
		rule.Cost.Tokens.Bound, rule.Cost.Tokens.RefundUnknown = "max_tokens", true
		e := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			i, _ := strconv.Atoi(r.Header.Get("X-Call"))
			c, h := calls[i], hostile[calls[i].kind]
			if h.status != 0 {
				t.Errorf("%s: the server was asked", c.kind)
			}
			used.Add(c.used)
			exceeded.Add(max(c.used-c.reserved, 0))
			switch {
			case h.known:
				charged.Add(c.used)
			case !h.free:
				charged.Add(c.reserved)
			}
			w.Header().Set("Content-Type", "application/json")
			if strings.HasPrefix(c.answer, "data:") {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			_, _ = io.WriteString(w, c.answer)
			if h.leaves {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}, "", rule)
		var all sync.WaitGroup
		for i, c := range calls {
			all.Go(func() {
				h := hostile[c.kind]
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := request(ctx, t, e.url)
				r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(c.body))
				r.Header = http.Header{"X-Call": {strconv.Itoa(i)}, "Content-Type": {cmp.Or(h.media, "application/json")}}
				if h.encoding != "" {
					r.Header.Set("Content-Encoding", h.encoding)
				}
				if c.kind == "websocket" {
					r.Method, r.Body = http.MethodGet, nil
					r.Header["Upgrade"], r.Header["Connection"] = []string{"websocket"}, []string{"Upgrade"}
				}
				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if h.status != 0 && res.StatusCode != h.status && res.StatusCode != http.StatusTooManyRequests {
					t.Errorf("%s: status %d", c.kind, res.StatusCode)
				}
				if h.leaves && res.StatusCode == http.StatusOK {
					_, _ = io.ReadFull(res.Body, make([]byte, len(c.answer)))
					cancel()
				}
				_, _ = io.Copy(io.Discard, res.Body)
			})
		}
		all.Wait()
		until(t, "all end", func() bool { return e.permits.Keys() == 0 })
		if got, want := e.left(t, "tokens", "all"), max(n-charged.Load(), 0); got != want {
			t.Errorf("%d: %d remain of %d; want %d", seed, got, n, want)
		}
		if used.Load() > n+exceeded.Load() || asked.Load() == 0 {
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
		if used != 201 && used != 2343+4 && used != 2343+4*503 {
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

// A body that stops arriving while its beginning is read holds memory for a short time only.
func TestBodyStallsBeforeItsRule(t *testing.T) {
	app := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }
	held := rules.Rule{Name: "held", MaxWait: 20 * time.Second,
		Limits: []headgate.Limit{headgate.Per(1, 15*time.Second)}}
	for _, rule := range []rules.Rule{budget(9000), held} {
		bubble(t, app, rule, func(t *testing.T, _ *edge, dial func() net.Conn) {
			conn, started := dial(), time.Now()
			answers := bufio.NewReader(conn)
			_, _ = io.WriteString(conn, plain)
			next(t, answers)
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")
			r := next(t, answers)
			if after := time.Since(started); r.StatusCode != http.StatusRequestTimeout ||
				after.Round(time.Second) != bodies.Patience {
				t.Errorf("%s: %d after %s", rule.Name, r.StatusCode, after)
			}
			synctest.Wait()
		})
	}
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

// The SDKs of providers show why a request is refused.
func TestRefusalSaysWhy(t *testing.T) {
	e := serve(t, echo, "", budget(1000))
	r := chat(t, e.url, strings.NewReader(`{"background":true}`))
	if !strings.Contains(r.text, `"error":{"message":"The tokens of a background answer cannot`) {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	r = get(t, e.url, "Upgrade: websocket", "Connection: keep-alive, Upgrade")
	if r.StatusCode != http.StatusUpgradeRequired || r.Header.Get("Upgrade") != "HTTP/1.1" ||
		r.Header.Get("Connection") != "Upgrade" {
		t.Errorf("a websocket: %d %v", r.StatusCode, r.Header)
	}
	if r = get(t, e.url, "Upgrade: websocket"); r.StatusCode != http.StatusOK {
		t.Errorf("no websocket, as no field Connection says so: %d %v", r.StatusCode, r.Header)
	}
}

// A rule in shadow does not refuse what it cannot count.
func TestUncountedUnderShadow(t *testing.T) {
	rule := budget(1000)
	rule.Mode = rules.Shadow
	bubble(t, shout, rule, func(t *testing.T, e *edge, dial func() net.Conn) {
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

// A stream of OpenAI's chat shape is asked for its usage, if the client has not said what it wants.
func TestIncludeUsage(t *testing.T) {
	const asked = `{"stream_options":{"include_usage":true},`
	for _, on := range []bool{true, false} {
		rule := budget(1e9)
		rule.Cost.Tokens.IncludeUsage = on
		e := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, strconv.FormatInt(r.ContentLength, 10)+" "+string(body))
		}, "", rule)
		for _, c := range []struct{ path, body, want string }{
			{"/v1/chat/completions", `{"model":"m","stream":true}`, asked + `"model":"m","stream":true}`},
			{"/openai/deployments/x/chat/completions", `{"stream":true}`, asked + `"stream":true}`},
			{"/v1/chat/completions", `{"stream":true,"stream_options":{}}`, ""},
			{"/v1/chat/completions", `{"stream":true,"stream_options":null}`, ""},
			{"/v1/chat/completions", `{"stream":false}`, ""},
			{"/v1/chat/completions", `{"stream":true`, ""},
			{"/v1/messages", `{"stream":true}`, ""},
		} {
			for _, known := range []bool{true, false} {
				body, length, want := io.Reader(strings.NewReader(c.body)), len(c.body), c.body
				if on && c.want != "" {
					length, want = len(c.want), c.want
				}
				if !known {
					body, length = io.MultiReader(body), -1
				}
				if got := chat(t, e.url+c.path, body).text; got != fmt.Sprintf("%d %s", length, want) {
					t.Errorf("%v %s: the server got %s; want %d %s", on, c.path, got, length, want)
				}
			}
		}
	}
}
