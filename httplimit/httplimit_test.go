package httplimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func parse(t testing.TB, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newLimiter(t testing.TB, texts ...string) *headgate.Limiter {
	t.Helper()
	var limits []headgate.Limit
	for _, text := range texts {
		limits = append(limits, parse(t, text))
	}
	l, err := headgate.NewLimiter(headgate.NewMemorySize(1000), limits...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// protect puts a limiter in front of a page that says "page".
func protect(t testing.TB, l *headgate.Limiter, o httplimit.Options) http.Handler {
	t.Helper()
	limit, err := httplimit.New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	return limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "page")
	}))
}

// answer is what a client sees.
type answer struct {
	status int
	header http.Header
	body   string
}

// get asks h for / as the client at 192.0.2.1, changed by the given functions.
func get(t testing.TB, h http.Handler, changes ...func(*http.Request)) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for _, change := range changes {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Result().Header, w.Body.String()}
}

func TestProblem(t *testing.T) {
	h := protect(t, newLimiter(t, "second=1/s", "day=1/d fixed-window"), httplimit.Options{})
	get(t, h)
	r := get(t, h)
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	var p struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Detail   string   `json:"detail"`
		Status   int      `json:"status"`
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		t.Fatal(err)
	}
	if p.Type != "https://iana.org/assignments/http-problem-types#quota-exceeded" ||
		p.Title == "" || p.Status != 429 {
		t.Errorf("%+v", p)
	}
	if !slices.Equal(p.Violated, []string{"second", "day"}) ||
		!strings.HasPrefix(p.Detail, "The limit day is exceeded. Retry in ") {
		t.Errorf("%+v", p)
	}
}

// What an outer handler said of its page is not said of the denial.
func TestStaleFields(t *testing.T) {
	h := protect(t, newLimiter(t, "1/h"), httplimit.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4")
		w.Header().Set("ETag", `"page"`)
		w.Header().Set("Content-Range", "bytes 0-3/4")
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	for _, want := range []string{"page", "quota-exceeded"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		if closing := answer.Body.Close(); err != nil || closing != nil ||
			!strings.Contains(string(b), want) {
			t.Errorf("%q, %v; want %q", b, err, want)
		}
		denied := answer.StatusCode == http.StatusTooManyRequests
		if denied == (answer.Header.Get("ETag") != "") ||
			denied == (answer.Header.Get("Content-Range") != "") {
			t.Errorf("%d %v", answer.StatusCode, answer.Header)
		}
		if answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("what holds for every answer is gone: %v", answer.Header)
		}
	}
}

func TestNeverFits(t *testing.T) {
	h := protect(t, newLimiter(t, "5/s"),
		httplimit.Options{Cost: func(*http.Request) int64 { return 6 }})
	r := get(t, h)
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "" ||
		r.header.Get("Ratelimit") != `"5/s";r=5` {
		t.Errorf("%d %v", r.status, r.header)
	}
	if b := r.body; !strings.Contains(b, "can never grant") {
		t.Error(b)
	}
}

func TestCost(t *testing.T) {
	var cost int64
	h := protect(t, newLimiter(t, "10/h"),
		httplimit.Options{Cost: func(*http.Request) int64 { return cost }})
	for _, c := range []struct {
		cost      int64
		status    int
		remaining string
	}{
		{3, 200, "7"},
		{0, 200, "7"},
		{-1, 200, "6"}, // a body of unknown length
		{7, 429, "6"},
		{6, 200, "0"},
		{0, 200, "0"},
		{1, 429, "0"},
	} {
		cost = c.cost
		r := get(t, h)
		if r.status != c.status || r.header.Get("X-Ratelimit-Remaining") != c.remaining ||
			(r.header.Get("Retry-After") != "") != (c.status == 429) {
			t.Errorf("cost %d: %d %v; want %d, remaining %s", c.cost, r.status, r.header, c.status,
				c.remaining)
		}
	}
}

func TestSkip(t *testing.T) {
	h := protect(t, newLimiter(t, "1/h"),
		httplimit.Options{Skip: func(r *http.Request) bool { return r.URL.Path == "/health" }})
	for range 3 {
		r := get(t, h, func(r *http.Request) { r.URL.Path = "/health" })
		if r.status != http.StatusOK || len(r.header["Ratelimit"]) != 0 {
			t.Fatalf("skipped: %d %v", r.status, r.header)
		}
	}
	if r := get(t, h); r.status != http.StatusOK {
		t.Errorf("the first that counts: %d", r.status)
	}
}

func TestDenied(t *testing.T) {
	h := protect(t, newLimiter(t, "1/h", "5/h"), httplimit.Options{
		Denied: func(w http.ResponseWriter, _ *http.Request, refused []headgate.Decision) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, strconv.Itoa(len(refused))+" "+refused[0].Limit.Name())
		},
	})
	get(t, h)
	r := get(t, h)
	if r.status != http.StatusTeapot || r.body != "1 1/h" || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %v", r.status, r.header)
	}
}

func TestShadow(t *testing.T) {
	var allowed, denied int
	o := httplimit.Options{Shadow: true,
		Observe: func(_ *http.Request, d headgate.Decision, _ error) {
			if d.Allowed() {
				allowed++
			} else {
				denied++
			}
		}}
	h := protect(t, newLimiter(t, "2/h"), o)
	for range 5 {
		r := get(t, h)
		if r.status != http.StatusOK || r.header.Get("Ratelimit") != "" ||
			r.header.Get("Retry-After") != "" {
			t.Errorf("%d %v", r.status, r.header)
		}
	}
	if allowed != 2 || denied != 3 {
		t.Errorf("observed %d allowed, %d denied; want 2 and 3", allowed, denied)
	}
}

func TestKeyWithoutLimits(t *testing.T) {
	l, err := headgate.NewLimiterFunc(headgate.NewMemory(),
		func(context.Context, string) ([]headgate.Limit, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if r := get(t, protect(t, l, httplimit.Options{})); r.status != http.StatusOK ||
		len(r.header["Ratelimit-Policy"]) != 0 {
		t.Errorf("%d %v", r.status, r.header)
	}
}

// broken is a store that cannot say.
type broken struct{ headgate.Store }

var errBroken = errors.New("broken")

func (broken) Take(ctx context.Context, _ headgate.Request) (headgate.Decision, error) {
	if _, limited := ctx.Deadline(); limited {
		<-ctx.Done()
		return headgate.Decision{}, ctx.Err()
	}
	return headgate.Decision{}, errBroken
}

func TestStoreCannotSay(t *testing.T) {
	l, err := headgate.NewLimiter(broken{}, parse(t, "1/s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		o      httplimit.Options
		status int
		err    error
	}{
		{"open", httplimit.Options{}, http.StatusOK, errBroken},
		{"closed", httplimit.Options{WhenStoreFails: httplimit.Closed},
			http.StatusServiceUnavailable, errBroken},
		{"closed, free", httplimit.Options{WhenStoreFails: httplimit.Closed,
			Cost: func(*http.Request) int64 { return 0 }}, http.StatusOK, nil},
		{"shadow", httplimit.Options{WhenStoreFails: httplimit.Closed, Shadow: true}, http.StatusOK,
			errBroken},
		{"slow", httplimit.Options{WhenStoreFails: httplimit.Closed, Timeout: time.Second},
			http.StatusServiceUnavailable, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen error
				c.o.Observe = func(_ *http.Request, d headgate.Decision, err error) {
					if seen = err; d.Allowed() {
						t.Error("an error that allows")
					}
				}
				r := get(t, protect(t, l, c.o))
				if r.status != c.status || !errors.Is(seen, c.err) ||
					r.header.Get("Ratelimit") != "" {
					t.Errorf("%d, %v, %v", r.status, seen, r.header)
				}
				if b := r.body; c.status == 503 &&
					!strings.Contains(b, "#temporary-reduced-capacity") {
					t.Error(b)
				}
			})
		})
	}
}

// unchecked is a fallback that denies by its mode, or by its share.
type unchecked struct {
	headgate.Store

	instances int
}

func (s unchecked) Take(_ context.Context, r headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{Limit: r.Limit.Share(s.instances), RetryAfter: time.Second}, nil
}

// If a fallback denies without knowing what the client has used, nothing is exceeded.
func TestUncheckedDenial(t *testing.T) {
	for instances, want := range map[int]int{0: 503, 1: 429} {
		l, err := headgate.NewLimiter(unchecked{headgate.NewMemory(), instances},
			headgate.PerHour(5))
		if err != nil {
			t.Fatal(err)
		}
		r := get(t, protect(t, l, httplimit.Options{
			Denied: func(w http.ResponseWriter, _ *http.Request, _ []headgate.Decision) {
				w.WriteHeader(http.StatusTooManyRequests)
			},
		}))
		remaining := r.header.Get("X-Ratelimit-Remaining")
		if r.status != want || r.header.Get("Retry-After") != "1" ||
			(remaining == "") != (want == 503) {
			t.Errorf("%d instances: %d %v", instances, r.status, r.header)
		}
		if want == 503 && !strings.Contains(r.body, "cannot check the limits") {
			t.Error(r.body)
		}
	}
}

// gone is a store that is asked by a client that has hung up.
type gone struct{ headgate.Store }

func (gone) Take(ctx context.Context, _ headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, ctx.Err()
}

// Who hangs up is not served uncharged.
func TestHungUp(t *testing.T) {
	l, err := headgate.NewLimiter(gone{}, parse(t, "1/s"))
	if err != nil {
		t.Fatal(err)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now()) // as an outer handler may set it
	defer cancel()
	for _, c := range []struct {
		ctx    context.Context //nolint:containedctx // of a row
		o      httplimit.Options
		status int
	}{
		{left, httplimit.Options{}, 499},
		{left, httplimit.Options{WhenStoreFails: httplimit.Closed}, 499},
		{left, httplimit.Options{Timeout: time.Hour}, 499},
		{left, httplimit.Options{Shadow: true,
			Observe: func(*http.Request, headgate.Decision, error) {}}, http.StatusOK},
		{late, httplimit.Options{}, http.StatusServiceUnavailable},
	} {
		r := get(t, protect(t, l, c.o), func(r *http.Request) { *r = *r.WithContext(c.ctx) })
		if r.status != c.status || (r.body == "") != (c.status == 499) {
			t.Errorf("%+v: %d %q; want %d", c.o, r.status, r.body, c.status)
		}
	}
}

// What costs nothing is no decision to tell, and shows the limits as they stand.
func TestFreeOfCharge(t *testing.T) {
	h := protect(t, newLimiter(t, "a=1/h", "b=9/h"), httplimit.Options{
		Cost: func(r *http.Request) int64 { return int64(len(r.Header["Pay"])) },
		Observe: func(r *http.Request, d headgate.Decision, _ error) {
			if len(r.Header["Pay"]) == 0 {
				t.Errorf("told of %+v", d)
			}
		},
	})
	get(t, h, func(r *http.Request) { r.Header["Pay"] = []string{"1"} })
	if r := get(t, h); r.status != http.StatusOK ||
		r.header.Get("Ratelimit") != `"a";r=0;t=3600, "b";r=8;t=400` {
		t.Errorf("%d %v", r.status, r.header)
	}
}

func TestNewErrors(t *testing.T) {
	l := newLimiter(t, "1/s")
	for _, c := range []struct {
		l    *headgate.Limiter
		o    httplimit.Options
		want string
	}{
		{nil, httplimit.Options{},
			"headgate: limiter is nil; want one made by headgate.NewLimiter"},
		{l, httplimit.Options{WhenStoreFails: 3},
			"headgate: WhenStoreFails is 3; want Closed or Open"},
		{l, httplimit.Options{Timeout: -1},
			"headgate: Timeout is -1ns; want more than 0, or 0 for none"},
		{l, httplimit.Options{Fields: 200},
			"headgate: Fields is 200; want a set of Draft10, XRateLimit and RetryAfter, or " +
				"NoFields"},
		{l, httplimit.Options{Shadow: true},
			"headgate: Observe is nil; want a function, because Shadow has no other effect"},
	} {
		if _, err := httplimit.New(c.l, c.o); err == nil || err.Error() != c.want {
			t.Errorf("error %v; want %s", err, c.want)
		}
	}
}

// A limit of 0 is for clients that are blocked: they get a 429 without a time to wait.
func TestBlockedClient(t *testing.T) {
	r := get(t, protect(t, newLimiter(t, "blocked=0/d fixed-window"), httplimit.Options{}))
	h := r.header
	if r.status != 429 || h.Get("Retry-After") != "" || h.Get("Ratelimit") != `"blocked";r=0` ||
		h.Get("Ratelimit-Policy") != `"blocked";q=0;w=86400` || h.Get("X-Ratelimit-Limit") != "0" {
		t.Errorf("%d %v", r.status, h)
	}
}
