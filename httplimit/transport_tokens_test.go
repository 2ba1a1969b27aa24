package httplimit_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// model is a server of a model, with a client that has a budget of tokens.
type model struct {
	*httptest.Server

	limiter *headgate.Limiter
	client  *http.Client
}

// newModel gives the client n tokens, which do not come back during a test.
func newModel(t testing.TB, store headgate.Store, n int64, server http.HandlerFunc) *model {
	t.Helper()
	l, err := headgate.NewLimiter(store, headgate.FixedWindow(n, 365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	m := &model{Server: httptest.NewServer(server), limiter: l}
	t.Cleanup(m.Close)
	m.use(t, httplimit.TransportOptions{})
	return m
}

// use makes the client one with the options.
func (m *model) use(t testing.TB, o httplimit.TransportOptions) {
	t.Helper()
	o.Key = func(*http.Request) string { return "all" }
	o.Tokens = &httplimit.TokenCost{Estimate: 200, Input: 1, Output: 4}
	transport, err := httplimit.NewTransport(m.limiter, o)
	if err != nil {
		t.Fatal(err)
	}
	m.client = &http.Client{Transport: transport}
}

// send sends body, or nothing if it is nil, and must return the start of an answer.
func (m *model) send(ctx context.Context, t testing.TB, path string, body io.Reader) *http.Response {
	t.Helper()
	r, err := m.try(ctx, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (m *model) try(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL+path, body)
	if err != nil {
		return nil, err
	}
	return m.client.Do(r)
}

// fails sends body, and returns the error; nil: there was an answer.
func (m *model) fails(ctx context.Context, body io.Reader) error {
	r, err := m.try(ctx, "/", body)
	if err == nil {
		_ = r.Body.Close()
	}
	return err
}

func (m *model) left(t testing.TB) int64 {
	t.Helper()
	d, err := m.limiter.Peek(t.Context(), "all")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

const (
	used      = `{"usage":{"prompt_tokens":10,"completion_tokens":5}}` // costs 30
	bounded   = `{"max_tokens":20}`                                    // 17 bytes are 5 tokens: 85
	unbounded = `{}`                                                   // 201
)

// answerAs answers as the path says.
func answerAs(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/stream", "/stream/cut":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\ndata: "+used+"\n\n")
		if r.URL.Path == "/stream" {
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, used)
		_ = z.Close()
	case "/none":
		_, _ = io.WriteString(w, "{}")
	case "/bad":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{}}`)
	case "/bad/used":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, used)
	case "/bad/empty":
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusTooManyRequests)
	case "/cut":
		_, _ = io.WriteString(w, used[:len(used)-1])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/moved":
		http.Redirect(w, r, "/", http.StatusSeeOther)
	default:
		_, _ = io.WriteString(w, used)
	}
}

func TestTransportTokens(t *testing.T) {
	m := newModel(t, headgate.NewMemory(), 10_000, answerAs)
	left := int64(10_000)
	for _, c := range []struct {
		path, body string
		cost       int64
	}{
		{"/", bounded, 30},
		{"/", unbounded, 30},
		{"/stream", bounded, 30},
		{"/stream/cut", bounded, 85},
		{"/gzip", bounded, 30},
		{"/none", bounded, 85},
		{"/none", unbounded, 201},
		{"/bad", unbounded, 0},
		{"/bad/used", unbounded, 30},
		{"/bad/empty", unbounded, 0},
		{"/cut", unbounded, 201},
		{"/moved", unbounded, 231}, // two requests
	} {
		r := m.send(t.Context(), t, c.path, strings.NewReader(c.body))
		_, _ = io.Copy(io.Discard, r.Body)
		left -= c.cost
		if got := m.left(t); got != left && !strings.HasPrefix(c.path, "/bad") {
			t.Errorf("%s: %d remain at the end of the body; want %d", c.path, got, left)
		}
		_ = r.Body.Close()
		if got := m.left(t); got != left {
			t.Errorf("%s: %d remain; want %d", c.path, got, left)
			left = got
		}
	}
	// A client that closes the body costs what was reserved.
	_ = m.send(t.Context(), t, "/none", strings.NewReader(bounded)).Body.Close()
	if got := m.left(t); got != left-85 {
		t.Errorf("closed at once: %d remain; want %d", got, left-85)
	}
	left -= 85
	// One that reads no further than [DONE], or than the status of a failure, costs what was used.
	_ = m.send(t.Context(), t, "/bad", strings.NewReader(bounded)).Body.Close()
	stream := m.send(t.Context(), t, "/stream", strings.NewReader(bounded))
	for lines := bufio.NewScanner(stream.Body); lines.Text() != "data: [DONE]"; {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	_ = stream.Body.Close()
	if left -= 30; m.left(t) != left {
		t.Errorf("closed at [DONE]: %d remain; want %d", m.left(t), left)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.URL+"/gzip", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	res, err := m.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if got := m.left(t); got != left-30 {
		t.Errorf("gzip that the client reads: %d remain; want %d", got, left-30)
	}
}

// An estimate is at most what the limit can hold, so a small limit grants one request at a time.
func TestTransportTokensOfSmallLimit(t *testing.T) {
	m := newModel(t, headgate.NewMemory(), 100, answerAs)
	r := m.send(t.Context(), t, "/", strings.NewReader(unbounded))
	if got := m.left(t); got != 0 {
		t.Errorf("%d remain during the first request", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := m.fails(ctx, strings.NewReader(bounded))
	if late, is := errors.AsType[*headgate.DeadlineError](err); !is || late.Wait < time.Hour {
		t.Errorf("the second: %v", err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	if got := m.left(t); got != 70 {
		t.Errorf("%d remain", got)
	}
}

// A request whose cost is 0 is not one of tokens. Neither is one without a limit.
func TestTransportTokensOfOthers(t *testing.T) {
	m := newModel(t, headgate.NewMemory(), 1000, answerAs)
	m.use(t, httplimit.TransportOptions{Cost: func(r *http.Request) int64 {
		return int64(len(r.URL.Path) - 1)
	}})
	_ = m.send(t.Context(), t, "/", nil).Body.Close()
	if got := m.left(t); got != 1000 {
		t.Errorf("%d remain of 1000 after a cost of 0", got)
	}
	_ = m.send(t.Context(), t, "/none", nil).Body.Close()
	if got := m.left(t); got != 800 {
		t.Errorf("%d remain of 1000 after an estimate of 200", got)
	}
	failed := errors.New("no plan")
	for _, mode := range []httplimit.Mode{0, httplimit.Closed, httplimit.Open} {
		for _, err := range []error{nil, failed} {
			l, fault := headgate.NewLimiterFunc(headgate.NewMemory(),
				func(context.Context, string) ([]headgate.Limit, error) { return nil, err })
			if fault != nil {
				t.Fatal(fault)
			}
			m.limiter = l
			m.use(t, httplimit.TransportOptions{WhenStoreFails: mode})
			got := m.fails(t.Context(), strings.NewReader(bounded))
			if want := err != nil && mode != httplimit.Open; want != errors.Is(got, failed) || !want && got != nil {
				t.Errorf("%v, mode %d: %v", err, mode, got)
			}
		}
	}
}

// resending is a Base that sends a body again, and gets no answer.
type resending struct{ got [2]string }

func (b *resending) RoundTrip(r *http.Request) (*http.Response, error) {
	for i := range b.got {
		body, _ := io.ReadAll(r.Body)
		b.got[i] = string(body)
		_ = r.Body.Close()
		r.Body, _ = r.GetBody()
	}
	return nil, io.ErrUnexpectedEOF
}

// What was not sent costs nothing. What may have been costs what was reserved.
func TestTransportTokensWithoutResponse(t *testing.T) {
	m := newModel(t, headgate.NewMemory(), 1000, func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})
	err := m.fails(t.Context(), strings.NewReader(bounded))
	if err == nil || m.left(t) != 1000-85 {
		t.Errorf("%v, %d remain", err, m.left(t))
	}
	broken := errors.New("broken")
	err = m.fails(t.Context(), io.MultiReader(strings.NewReader(bounded), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || m.left(t) != 1000-85 {
		t.Errorf("a body that fails: %v, %d remain", err, m.left(t))
	}
	m.Close()
	err = m.fails(t.Context(), strings.NewReader(bounded))
	if err == nil || m.left(t) != 1000-85 {
		t.Errorf("nobody listens: %v, %d remain", err, m.left(t))
	}
	base := &resending{}
	m.use(t, httplimit.TransportOptions{Base: base})
	err = m.fails(t.Context(), strings.NewReader(bounded))
	if !errors.Is(err, io.ErrUnexpectedEOF) || m.left(t) != 1000-170 ||
		base.got != [2]string{bounded, bounded} {
		t.Errorf("%v, %d remain, sent %q", err, m.left(t), base.got)
	}
}

// A body that is not made does not keep a request whose context has ended, and is closed.
func TestTransportTokensOfStalledBody(t *testing.T) {
	m := newModel(t, headgate.NewMemory(), 1000, answerAs)
	ctx, cancel := context.WithCancel(t.Context())
	body, from := io.Pipe()
	go func() {
		_, _ = io.WriteString(from, bounded)
		cancel()
	}()
	if err := m.fails(ctx, body); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := from.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the body is open: %v", err)
	}
	if got := m.left(t); got != 1000 {
		t.Errorf("%d remain", got)
	}
}

// The server gets the body as it was, also after a redirect. What is reserved counts all its bytes,
// or the first MiB if their number is not known.
func TestTransportTokensAndBodies(t *testing.T) {
	var got atomic.Value
	m := newModel(t, headgate.NewMemory(), 1e12, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Store(fmt.Sprintf("%d %s", r.ContentLength, body))
		if r.URL.Path == "/again" {
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		}
	})
	const mib = 1 << 20
	left := int64(1e12)
	for _, c := range []struct {
		path, text  string
		known, cost int64 // with a Content-Length, and without
	}{
		{"/", "", 200, 200},
		{"/", "x", 201, 201},
		{"/", bounded, 85, 85},
		{"/", bounded + strings.Repeat(" ", mib-len(bounded)), 80 + mib/4, 200 + mib/4},
		{"/", bounded + strings.Repeat(" ", 2*mib-len(bounded)), 200 + 2*mib/4, 200 + mib/4},
		{"/again", bounded, 170, 0},
		{"/again", bounded + strings.Repeat("x", 2*mib-len(bounded)), 400 + 4*mib/4, 0},
	} {
		for _, known := range []bool{true, false} {
			length, cost, body := len(c.text), c.known, io.Reader(strings.NewReader(c.text))
			if !known {
				length, cost, body = -1, c.cost, io.MultiReader(body)
			}
			if cost == 0 { // it cannot be sent again
				continue
			}
			_ = m.send(t.Context(), t, c.path, body).Body.Close()
			if want := fmt.Sprintf("%d %s", length, c.text); got.Load() != want {
				t.Errorf("%s: the server got %.30q, not %.30q", c.path, got.Load(), want)
			}
			if left -= cost; m.left(t) != left {
				t.Errorf("%s %.20q: %d more remain", c.path, c.text, m.left(t)-left)
			}
		}
	}
}

// stores are one in memory and one in Redis.
func stores(t *testing.T) map[string]headgate.Store {
	t.Helper()
	redis, err := redisstore.Open(redistest.Start(t).URL() + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	return map[string]headgate.Store{"memory": headgate.NewMemory(), "Redis": redis}
}

// generation is a request to a model, and what it uses.
type generation struct{ most, estimate, used int64 }

func (g generation) body(i int) string {
	return fmt.Sprintf(`{"max_tokens":%d,"call":%d}`, g.most, i)
}

// generations are 50 requests for a budget of n tokens. With exceed, some use more than is reserved.
func generations(rng *rand.Rand, n int64, exceed bool) []generation {
	list := make([]generation, 50)
	for i := range list {
		g := generation{most: 1 + rng.Int64N(100)}
		g.estimate = min(n, 4*g.most+int64(len(g.body(i))+3)/4)
		g.used = rng.Int64N(g.estimate + 1)
		if exceed && rng.IntN(4) == 0 {
			g.used += rng.Int64N(300)
		}
		list[i] = g
	}
	return list
}

// 50 streams share a budget of n tokens: what they use in all is at most n, and what exceeded
// their estimates. Every fifth client hangs up.
func TestTransportTokensAreNeverOver(t *testing.T) { //nolint:gocognit // one run after the other
	for name, store := range stores(t) {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 17))
				n := 500 + rng.Int64N(5000)
				calls := generations(rng, n, seed%2 == 1)
				var total, exceeded, charged, asked atomic.Int64
				m := newModel(t, store, n, func(w http.ResponseWriter, r *http.Request) {
					var i int
					body, _ := io.ReadAll(r.Body)
					_, number, _ := bytes.Cut(body, []byte("call"))
					if _, err := fmt.Sscanf(string(number), `":%d}`, &i); err != nil {
						t.Error(err)
					}
					g := calls[i]
					asked.Add(1)
					total.Add(g.used)
					exceeded.Add(max(g.used-g.estimate, 0))
					hangsUp := i%5 == 0
					if hangsUp {
						charged.Add(g.estimate)
					} else {
						charged.Add(g.used)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "data: {\"choices\":[]}\n\n")
					_ = http.NewResponseController(w).Flush()
					if hangsUp {
						<-r.Context().Done()
						return
					}
					_, _ = fmt.Fprintf(w, "data: {\"usage\":{\"prompt_tokens\":%d}}\n\n", g.used)
				})
				if err := m.limiter.Reset(t.Context(), "all"); err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for i, g := range calls {
					all.Go(func() { m.generate(t, g.body(i), i%5 == 0) })
				}
				all.Wait()
				if got := m.left(t); got != max(n-charged.Load(), 0) {
					t.Errorf("%d remain of %d, %d were charged", got, n, charged.Load())
				}
				if total.Load() > n+exceeded.Load() || asked.Load() == 0 {
					t.Errorf("%d of %d used in %d requests, %d above the estimates", total.Load(), n,
						asked.Load(), exceeded.Load())
				}
			})
		}
	}
}

// generate reads a stream to its end, or hangs up after a line. A request for which there is no
// budget fails.
func (m *model) generate(t *testing.T, body string, hangUp bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	r, err := m.try(ctx, "/", strings.NewReader(body))
	if err != nil {
		if _, late := errors.AsType[*headgate.DeadlineError](err); !late {
			t.Error(err)
		}
		return
	}
	defer r.Body.Close()
	if hangUp {
		_, _ = bufio.NewReader(r.Body).ReadString('\n')
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
}

// A client that hangs up costs at least the estimate, wherever it does.
func TestTransportTokensOfHangUp(t *testing.T) {
	content, err := os.ReadFile("../internal/usage/testdata/anthropic.sse")
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t, headgate.NewMemory(), 1e9, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(content)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	left := int64(1e9)
	for n := 0; n < len(content); n += 7 {
		ctx, cancel := context.WithCancel(t.Context())
		r := m.send(ctx, t, "/", strings.NewReader(unbounded))
		if _, err := io.ReadFull(r.Body, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			cancel()
		}
		_ = r.Body.Close()
		cancel()
		// 2095 tokens of input, and 248 for a cache, are known from the first event on.
		cost := left - m.left(t)
		if cost != 201 && cost != 2343+4 && cost != 2343+4*503 {
			t.Errorf("a hang-up after %d bytes costs %d", n, cost)
		}
		left -= cost
	}
}

// endless is a body of so many bytes.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	return int(n), nil
}

// 100 MB in both directions pass in constant memory.
func TestTransportTokensOfLargeBodies(t *testing.T) {
	const size, begin = int64(100e6), `{"max_tokens":7,"a":"`
	var got atomic.Int64
	m := newModel(t, headgate.NewMemory(), 1e9, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Store(n)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"a":"`)
		_, _ = io.Copy(w, &endless{size})
		_, _ = io.WriteString(w, `",`+used[1:])
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := m.send(t.Context(), t, "/",
		io.MultiReader(strings.NewReader(begin), &endless{size}, strings.NewReader(`"}`)))
	defer r.Body.Close()
	answered, err := io.Copy(io.Discard, r.Body)
	runtime.ReadMemStats(&after)
	if err != nil || got.Load() != size+int64(len(begin))+2 || answered != size+int64(len(used))+7 {
		t.Errorf("%d bytes of the request, %d of the answer, %v", got.Load(), answered, err)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 10<<20 {
		t.Errorf("%d bytes were allocated", total)
	}
	if left := m.left(t); left != 1e9-30 {
		t.Errorf("%d remain", left)
	}
}

// Each part of a stream arrives before the server goes on, and what is no stream of a model is not
// touched.
func TestTransportTokensHoldNothingUp(t *testing.T) {
	arrived := make(chan struct{})
	m := newModel(t, headgate.NewMemory(), 1000, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/upgrade" {
			conn, lines, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+
				"Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := lines.ReadString('\n')
			_, _ = io.WriteString(conn, line)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			_, _ = io.WriteString(w, "data: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-arrived
		}
	})
	r := m.send(t.Context(), t, "/", strings.NewReader(bounded))
	defer r.Body.Close()
	for range 5 {
		if _, err := io.ReadFull(r.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		arrived <- struct{}{}
	}
	if left := m.left(t); left != 1000-85 {
		t.Errorf("%d remain", left)
	}
	up, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.URL+"/upgrade", nil)
	if err != nil {
		t.Fatal(err)
	}
	up.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
	switched, err := m.client.Do(up)
	if err != nil {
		t.Fatal(err)
	}
	defer switched.Body.Close()
	conn, is := switched.Body.(io.ReadWriteCloser)
	if !is {
		t.Fatalf("the body is a %T", switched.Body)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	if left := m.left(t); left != 1000-85-200 {
		t.Errorf("%d remain", left)
	}
}

// slowRefunds is a store that takes a minute for what settles a cost.
type slowRefunds struct{ headgate.Store }

func (s slowRefunds) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Cost < 0 || r.Force {
		time.Sleep(time.Minute)
	}
	return s.Store.Take(ctx, r)
}

// The end of a body waits for the store for at most 100 ms, and parts of it do not wait.
func TestTransportTokensAndSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := headgate.NewLimiter(slowRefunds{headgate.NewMemory()}, parse(t, "1000/m"))
		if err != nil {
			t.Fatal(err)
		}
		client := newClient(t, l, &api{answer: func(*http.Request) *http.Response {
			r := reply(http.StatusOK, "Content-Type: application/json")
			r.Body = io.NopCloser(&whole{used})
			return r
		}}, httplimit.TransportOptions{Tokens: &httplimit.TokenCost{Estimate: 200, Input: 1}})
		r, err := client.Get("http://api.example/") //nolint:noctx // it ends
		if err != nil {
			t.Fatal(err)
		}
		started, part := time.Now(), make([]byte, 1000)
		n, err := r.Body.Read(part)
		if string(part[:n]) != used || err != nil || time.Since(started) > 0 {
			t.Errorf("%q, %v after %s", part[:n], err, time.Since(started))
		}
		n, err = r.Body.Read(part)
		if n != 0 || !errors.Is(err, io.EOF) || time.Since(started) != 100*time.Millisecond {
			t.Errorf("%d bytes, %v after %s", n, err, time.Since(started))
		}
		_ = r.Body.Close()
		if since := time.Since(started); since != 100*time.Millisecond {
			t.Errorf("closed after %s", since)
		}
		time.Sleep(time.Hour)
	})
}

// whole is a body that returns all of it with its end.
type whole struct{ text string }

func (w *whole) Read(p []byte) (int, error) {
	n := copy(p, w.text)
	w.text = w.text[n:]
	return n, io.EOF
}

// A response that asks for a pause, and says no usage, gives back what was reserved. Waiting,
// pauses and permits are those of other requests.
func TestTransportTokensAndPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/10s")
		a := &api{answer: func(r *http.Request) *http.Response {
			switch r.URL.Path {
			case "/busy":
				return reply(http.StatusTooManyRequests, "Retry-After: 30")
			case "/whole":
				return nil // without usage
			}
			answer := reply(http.StatusOK, "Content-Type: application/json")
			answer.Body = io.NopCloser(&whole{`{"usage":{"prompt_tokens":10}}`})
			return answer
		}}
		client := newClient(t, l, a, httplimit.TransportOptions{
			Tokens:  &httplimit.TokenCost{Estimate: 100, Input: 1},
			Permits: newPermits(t, concurrency.NewMemory(), 1, time.Minute), Period: time.Second,
		})
		for _, path := range []string{"/busy", "/a", "/whole", "/b"} {
			r, err := http.NewRequestWithContext(
				t.Context(), http.MethodPost, "http://api.example"+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		// 10 of 100 tokens need a second, and all of them 10 s.
		wantCalls(t, a, "/busy 0s", "/a 30s", "/whole 31s", "/b 41s")
	})
}

// An error of the store when a cost is settled is observed, and changes nothing for the client.
func TestTransportTokensObserveErrors(t *testing.T) {
	for _, mode := range []httplimit.Mode{httplimit.Closed, httplimit.Open} {
		l, err := headgate.NewLimiter(lostRefunds{headgate.NewMemory()}, parse(t, "1000/m"))
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(t, headgate.NewMemory(), 1000, answerAs)
		m.limiter = l
		var seen []error
		m.use(t, httplimit.TransportOptions{WhenStoreFails: mode,
			Observe: func(_ *http.Request, _ time.Duration, err error) { seen = append(seen, err) }})
		r := m.send(t.Context(), t, "/", strings.NewReader(bounded))
		if got, err := io.ReadAll(r.Body); string(got) != used || err != nil || r.Body.Close() != nil {
			t.Errorf("%q, %v", got, err)
		}
		if len(seen) != 1 || !errors.Is(seen[0], errLost) {
			t.Errorf("%v were observed", seen)
		}
	}
}

var errLost = errors.New("the refund is lost")

// lostRefunds is a store that fails to settle a cost.
type lostRefunds struct{ headgate.Store }

func (s lostRefunds) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Cost < 0 {
		return headgate.Decision{}, errLost
	}
	return s.Store.Take(ctx, r)
}
