// Package doortest is one table of requests for the middleware of every HTTP server. Each of them
// answers as that of net/http does.
package doortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/httplimit"
)

// Options are those of a middleware, without the types of its server.
type Options struct {
	Key            httplimit.KeyFunc // nil: the default
	CostField      string            // a header field with the cost, or ""
	Count          func(status int) bool
	SkipPath       string // of the requests that are skipped
	OwnDenied      bool   // denies with the status 418 and the body OwnBody
	WhenStoreFails httplimit.Mode
	Shadow         bool
	Timeout        time.Duration
	Fields         httplimit.Fields
	Observed       *atomic.Int64 // counts the calls of Observe
}

// OwnBody is the body of a denial with OwnDenied.
const OwnBody = "own"

// Middleware is a limiter with its options. The first of several is the outer one.
type Middleware struct {
	Limiter *headgate.Limiter
	Options Options
}

// Start starts a server with middlewares in front of one handler, and returns its URL. The handler
// answers these paths:
//
//	/status/401  with this status
//	/error/401   with an error of the framework that means this status
//	/panic       with a panic, which the server survives
//	/nothing     without writing anything
//	/replaced    after it has replaced the context of the request by one that has ended
//	others       with the body "ok"
type Start func(t testing.TB, ms []Middleware) (url string)

// For returns the options of a server's middleware, with its Key and its function that denies.
func For[R, D any](
	o Options, key func(httplimit.KeyFunc) func(R) string, denied D,
) httplimit.OptionsOf[R, D] {
	request := func(r R) (read httplimit.Request) {
		key(func(q httplimit.Request) string { read = q; return "" })(r)
		return read
	}
	of := httplimit.OptionsOf[R, D]{
		Count: o.Count, WhenStoreFails: o.WhenStoreFails, Shadow: o.Shadow, Timeout: o.Timeout,
		Fields: o.Fields,
	}
	if o.Key != nil {
		of.Key = key(o.Key)
	}
	if o.CostField != "" {
		of.Cost = func(r R) int64 {
			n, err := strconv.ParseInt(strings.Join(request(r).Field(o.CostField), ""), 10, 64)
			if err != nil {
				return 1
			}
			return n
		}
	}
	if o.SkipPath != "" {
		of.Skip = func(r R) bool { return request(r).Path() == o.SkipPath }
	}
	if o.Observed != nil {
		of.Observe = func(R, headgate.Decision, error) { o.Observed.Add(1) }
	}
	if o.OwnDenied {
		of.Denied = denied
	}
	return of
}

// NetHTTP starts net/http, whose answers are those that others should give.
func NetHTTP(t testing.TB, ms []Middleware) string {
	t.Helper()
	var handler http.Handler = http.HandlerFunc(Handle)
	for _, m := range slices.Backward(ms) {
		limit, err := httplimit.New(m.Limiter, For(m.Options, httplimit.Key,
			func(w http.ResponseWriter, _ *http.Request, _ []headgate.Decision) {
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, OwnBody)
			}))
		if err != nil {
			t.Fatal(err)
		}
		handler = limit(handler)
	}
	server := httptest.NewServer(Recovering(handler))
	t.Cleanup(server.Close)
	return server.URL
}

// Recovering answers a panic with the status 500.
func Recovering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// Status returns the status that a path asks for, and whether by an error.
func Status(path string) (status int, byError bool) {
	for _, prefix := range []string{"/status/", "/error/"} {
		if text, ok := strings.CutPrefix(path, prefix); ok {
			if status, err := strconv.Atoi(text); err == nil {
				return status, prefix == "/error/"
			}
		}
	}
	return http.StatusOK, false
}

// Handle is the handler for servers that take one of net/http.
func Handle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Handled", "yes")
	switch r.URL.Path {
	case "/panic":
		panic("handler")
	case "/nothing":
		return
	case "/replaced":
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		*r = *r.WithContext(ctx)
	}
	status, _ := Status(r.URL.Path)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "ok")
}

// request is a request of the table: a path, and header fields as "Name: value".
type request struct {
	method, path string
	fields       []string
}

// response is what a client sees of the limits.
type response struct {
	status  int
	handled bool
	fields  string
	body    string // of a denial
}

func get(path string, fields ...string) request { return request{http.MethodGet, path, fields} }

func times(n int, r request) []request { return slices.Repeat([]request{r}, n) }

func (r request) send(t testing.TB, url string) response {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), r.method, url+r.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.fields {
		name, value, _ := strings.Cut(f, ": ")
		q.Header.Add(name, value)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := response{status: answer.StatusCode, handled: answer.Header.Get("Handled") != ""}
	var fields []string
	for _, name := range []string{
		"Ratelimit-Policy", "Ratelimit", "Retry-After", "X-Ratelimit-Limit",
		"X-Ratelimit-Remaining",
	} {
		if values := answer.Header.Values(name); len(values) > 0 {
			fields = append(fields, fmt.Sprintf("%s %q", name, values))
		}
	}
	out.fields = strings.Join(fields, "\n")
	switch answer.StatusCode {
	case http.StatusTeapot: // its type is the framework's
		out.body = string(body)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		out.body = answer.Header.Get("Content-Type") + " " + string(body)
	}
	return out
}

// broken is a store that is unavailable, or does not answer.
type broken struct {
	headgate.Store

	hangs bool
}

var errBroken = errors.New("the store is away")

func (b broken) Take(ctx context.Context, _ headgate.Request) (headgate.Decision, error) {
	if b.hangs {
		<-ctx.Done()
		return headgate.Decision{}, ctx.Err()
	}
	return headgate.Decision{}, errBroken
}

func (b broken) TakeAll(ctx context.Context, _ []headgate.Request, _ []headgate.Decision) error {
	_, err := b.Take(ctx, headgate.Request{})
	return err
}

// at is a store in which time stands, so that all servers answer with the same times.
type at struct{ headgate.Store }

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

func (s at) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	r.At = noon
	return s.Store.Take(ctx, r)
}

func (s at) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].At = noon
	}
	return s.Store.TakeAll(ctx, rs, ds)
}

func limiter(t testing.TB, store headgate.Store, texts ...string) *headgate.Limiter {
	t.Helper()
	var limits []headgate.Limit
	for _, text := range texts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	l, err := headgate.NewLimiter(store, limits...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Run sends the requests of the table to a server and to net/http, and compares what they answer.
func Run(t *testing.T, start Start) {
	for name, c := range cases(t) {
		t.Run(name, func(t *testing.T) {
			url, reference := start(t, c.middlewares()), NetHTTP(t, c.middlewares())
			for i, r := range c.requests {
				if got, want := r.send(t, url), r.send(t, reference); got != want {
					t.Errorf("request %d, %+v:\n%+v\nnet/http:\n%+v", i, r, got, want)
				}
			}
		})
	}
	t.Run("parallel guesses", func(t *testing.T) { parallelGuesses(t, start) })
}

type exchange struct {
	middlewares func() []Middleware // anew for each server
	requests    []request
}

// table is the exchanges by name.
type table map[string]exchange

func (c table) add(name string, ms func() []Middleware, rs ...request) {
	c[name] = exchange{ms, rs}
}

func cases(t *testing.T) table {
	t.Helper()
	c := table{}
	addLimits(t, c)
	addFailures(t, c)
	addOutcomes(t, c)
	addKeys(t, c)
	return c
}

// one makes a middleware with limits in memory.
func one(t *testing.T, o Options, limits ...string) func() []Middleware {
	t.Helper()
	return func() []Middleware {
		return []Middleware{{limiter(t, at{headgate.NewMemory()}, limits...), o}}
	}
}

func addLimits(t *testing.T, c table) {
	t.Helper()
	c.add("one limit", one(t, Options{}, "2/h"), times(4, get("/"))...)
	c.add("several limits", one(t, Options{}, "3/h", "day=2/d fixed-window"), times(4, get("/"))...)
	head, post := request{http.MethodHead, "/", nil}, request{http.MethodPost, "/", nil}
	c.add("HEAD and POST", one(t, Options{}, "2/h"), head, post, head, post)
	c.add("two limiters", func() []Middleware {
		return []Middleware{
			{limiter(t, at{headgate.NewMemory()}, "outer=4/h"), Options{}},
			{limiter(t, at{headgate.NewMemory()}, "inner=2/h"), Options{}},
		}
	}, times(5, get("/"))...)
	five, free := get("/", "Cost: 5"), get("/", "Cost: 0")
	c.add("costs", one(t, Options{CostField: "Cost"}, "9/h"),
		five, free, five, free, get("/", "Cost: 10"), get("/", "Cost: -1"))
	c.add("cost 0, denied", one(t, Options{CostField: "Cost"}, "1/h"), get("/"), get("/"), free)
	c.add("some fields", one(t, Options{Fields: httplimit.XRateLimit}, "1/h"), get("/"), get("/"))
	c.add("no fields", one(t, Options{Fields: httplimit.NoFields}, "1/h"), times(2, get("/"))...)
	c.add("own denial", one(t, Options{OwnDenied: true}, "1/h"), times(3, get("/"))...)
	health := get("/health")
	c.add("skipped", one(t, Options{SkipPath: "/health"}, "1/h"),
		health, get("/"), health, get("/"))
	c.add("shadow", one(t, Options{Shadow: true, Observed: new(atomic.Int64)}, "1/h"),
		times(3, get("/"))...)
	c.add("key without limits", func() []Middleware {
		none := func(context.Context, string) ([]headgate.Limit, error) { return nil, nil }
		l, err := headgate.NewLimiterFunc(headgate.NewMemory(), none)
		if err != nil {
			t.Fatal(err)
		}
		return []Middleware{{l, Options{Count: func(int) bool { return false }}}}
	}, times(2, get("/"))...)
}

func addFailures(t *testing.T, c table) {
	t.Helper()
	closed, err := fallback.New(broken{}, fallback.Options{Mode: fallback.Closed})
	if err != nil {
		t.Fatal(err)
	}
	const shut = httplimit.Closed
	hangs := broken{hangs: true}
	for name, m := range map[string]struct {
		store headgate.Store
		o     Options
	}{
		"store away":          {broken{}, Options{}},
		"store away, closed":  {broken{}, Options{WhenStoreFails: shut, OwnDenied: true}},
		"store hangs":         {hangs, Options{Timeout: time.Millisecond}},
		"store hangs, closed": {hangs, Options{Timeout: time.Millisecond, WhenStoreFails: shut}},
		"fallback closed":     {closed, Options{OwnDenied: true}},
	} {
		c.add(name, func() []Middleware {
			return []Middleware{{limiter(t, m.store, "2/h"), m.o}}
		}, times(2, get("/"))...)
	}
}

func addOutcomes(t *testing.T, c table) {
	t.Helper()
	failed := func(status int) bool { return status == http.StatusUnauthorized }
	never := func(int) bool { return false }
	right, wrong, err401 := get("/status/200"), get("/status/401"), get("/error/401")
	c.add("statuses", one(t, Options{}, "9/h"),
		get("/status/204"), get("/status/404"), get("/error/404"), get("/error/500"))
	c.add("nothing written", one(t, Options{}, "2/h"), times(3, get("/nothing"))...)
	c.add("failures count", one(t, Options{Count: failed}, "2/h"),
		right, right, right, wrong, right, err401, right, err401)
	c.add("errors that count not", one(t, Options{Count: never}, "1/h"),
		get("/error/500"), err401, get("/nothing"), get("/status/301"), get("/"))
	c.add("a context replaced", one(t, Options{Count: never}, "1/h"), times(3, get("/replaced"))...)
	c.add("a panic stays charged", one(t, Options{Count: never}, "2/h"),
		get("/panic"), get("/"), get("/panic"), get("/"))
}

func addKeys(t *testing.T, c table) {
	t.Helper()
	address := func(o httplimit.AddressOptions) httplimit.KeyFunc {
		key, err := httplimit.ClientAddress(o)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	proxies := []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"),
	}
	forged := []request{
		get("/", "X-Forwarded-For: 192.0.2.1"),
		get("/", "X-Forwarded-For: 192.0.2.2", "Forwarded: for=192.0.2.3"),
		get("/", "X-Forwarded-For: 198.51.100.1, 192.0.2.2"),
		get("/", "X-Forwarded-For: 198.51.100.2", "X-Forwarded-For: 192.0.2.2, 10.1.1.1"),
		get("/", "X-Real-Ip: 192.0.2.9"),
		get("/", "Forwarded: for=192.0.2.3"),
	}
	trusted := httplimit.AddressOptions{Trusted: proxies}
	c.add("forged", one(t, Options{}, "3/h"), forged...)
	none := httplimit.AddressOptions{}
	c.add("none trusted", one(t, Options{Key: address(none)}, "3/h"), forged...)
	c.add("proxies", one(t, Options{Key: address(trusted)}, "2/h"), forged...)
	byKey := httplimit.Header("x-api-key")
	for name, key := range map[string]httplimit.KeyFunc{
		"header": byKey, "cookie": httplimit.Cookie("s"),
		"path":  httplimit.Path(),
		"join":  httplimit.Join(httplimit.Path(), byKey),
		"first": httplimit.FirstOf(byKey, httplimit.RemoteAddress),
	} {
		c.add("key by "+name, one(t, Options{Key: key}, "2/h"),
			get("/a", "X-Api-Key: a", "Cookie: s=a"),
			get("/b", "X-Api-Key: a", "Cookie: t=0; s=b"),
			get("//a/../a", "X-Api-Key: b"),
			get("/a?x=%2F", "X-Api-Key: A"),
			get("/%61", `Cookie: s="a"`),
			request{http.MethodPost, "/a", []string{"X-Api-Key: a", "X-Api-Key: b"}},
			get("/"),
			request{"INVENTED", "/", nil},
			get("/a", "X-Api-Key: "+strings.Repeat("x", 300)),
			request{http.MethodHead, "/a", []string{"X-Api-Key: a"}},
			get("/", "X-Api-Key: a"), get("/", "X-Api-Key: a"))
	}
}

// parallelGuesses sends 200 wrong guesses at once: at most as many as the limit holds get through.
func parallelGuesses(t *testing.T, start Start) {
	const limit = 5
	url := start(t, []Middleware{{limiter(t, headgate.NewMemory(), "5/h"), Options{
		Count: func(status int) bool { return status == http.StatusUnauthorized },
	}}})
	for range 3 * limit {
		if r := get("/status/200").send(t, url); r.status != http.StatusOK {
			t.Fatalf("a right request: %+v", r)
		}
	}
	var handled atomic.Int64
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if r := get("/status/401").send(t, url); r.handled {
				handled.Add(1)
			}
		})
	}
	all.Wait()
	if got := handled.Load(); got != limit {
		t.Errorf("%d guesses got through; want %d", got, limit)
	}
}
