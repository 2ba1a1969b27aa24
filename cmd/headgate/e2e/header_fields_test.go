package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// A real client of a real server reads the header fields, by a library for structured
// fields and by hand, and does as they say: for every algorithm, and for two limits at
// once.
func TestHeaderFields(t *testing.T) {
	t.Parallel()
	var clients sync.WaitGroup // together, in the place of one test: they only wait
	for name, texts := range map[string][]string{
		"token bucket":   {"2/s"},
		"stepped":        {"3/2s stepped"},
		"fixed window":   {"3/2s fixed-window"},
		"sliding window": {"3/2s sliding-window"},
		"sliding log":    {"3/2s sliding-log"},
		"two limits":     {"second=5/s burst 3", "hour=1000/h fixed-window"},
	} {
		clients.Go(func() {
			t.Run(name, func(t *testing.T) { obey(t, texts) })
		})
	}
	clients.Wait()
}

// obey asks until it is denied, waits as it was told, and is granted; then waits until
// the limit is as new, and finds it so.
func obey(t *testing.T, texts []string) {
	t.Helper()
	c := newClient(t, texts)
	for denials := 0; denials < 2; {
		f := c.ask(http.MethodGet)
		if f.status == http.StatusOK {
			continue
		}
		denials++
		// The wait itself is what is tested: a client that obeys to the second.
		time.Sleep(time.Duration(f.retryAfter) * time.Second)
		if f := c.ask(http.MethodGet); f.status != http.StatusOK {
			t.Errorf("denied after waiting as told: %+v", f)
		}
	}
	f := c.ask(http.MethodHead)
	time.Sleep(time.Until(time.Unix(f.reset, 0)))
	if f := c.ask(http.MethodHead); f.remaining != f.limit {
		t.Errorf("at its reset, %d of %d remain", f.remaining, f.limit)
	}
}

// client asks a server whose HEAD costs nothing.
type client struct {
	t      *testing.T
	limits []headgate.Limit
	server *httptest.Server
}

func newClient(t *testing.T, texts []string) *client {
	t.Helper()
	c := &client{t: t}
	for _, text := range texts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		c.limits = append(c.limits, l)
	}
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), c.limits...)
	if err != nil {
		t.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Options{Cost: func(r *http.Request) int64 {
		if r.Method == http.MethodHead {
			return 0
		}
		return 1
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.server = httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "page") })))
	t.Cleanup(c.server.Close)
	return c
}

// fields is an answer, its fields read.
type fields struct {
	status                              int
	limit, remaining, reset, retryAfter int64
}

// ask asks once, and holds the answer's fields to the rules.
func (c *client) ask(method string) fields {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	before := time.Now()
	answer, err := c.server.Client().Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		c.t.Fatal(err)
	}
	f := fields{
		status: answer.StatusCode,
		limit:  c.number(answer, "X-Ratelimit-Limit"), remaining: c.number(answer, "X-Ratelimit-Remaining"), reset: c.number(answer, "X-Ratelimit-Reset"),
	}
	denied := f.status == http.StatusTooManyRequests
	if answer.Header.Get("Retry-After") != "" {
		f.retryAfter = c.number(answer, "Retry-After")
	}
	if (f.retryAfter > 0) != denied || f.reset < before.Unix() || f.remaining > f.limit {
		c.t.Errorf("fields %+v", f)
	}
	c.structured(answer, f, denied)
	return f
}

func (c *client) number(answer *http.Response, name string) int64 {
	c.t.Helper()
	values := answer.Header.Values(name)
	if len(values) != 1 {
		c.t.Fatalf("%s: %q; want one value", name, values)
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 0 {
		c.t.Fatalf("%s: %q; want a whole number", name, values[0])
	}
	return n
}

// item is one policy or service limit, as draft-ietf-httpapi-ratelimit-headers-10 has it
// where its parameters are Integers; t may be absent.
var item = regexp.MustCompile(`^"[a-zA-Z0-9/ ._-]+";(q=(0|[1-9][0-9]{0,14});w=[1-9][0-9]{0,14}|r=(0|[1-9][0-9]{0,14})(;t=(0|[1-9][0-9]{0,14}))?)$`)

// structured reads RateLimit-Policy and RateLimit in two ways.
func (c *client) structured(answer *http.Response, f fields, denied bool) {
	c.t.Helper()
	var named []string
	for _, m := range c.list(answer, "Ratelimit-Policy", "q", "w") {
		named = append(named, m.name)
		i := slices.IndexFunc(c.limits, func(l headgate.Limit) bool { return l.Name() == m.name })
		if i < 0 || m.first != c.limits[i].Capacity() || m.second < 1 {
			c.t.Errorf("policy %+v", m)
		}
	}
	if len(named) != len(c.limits) {
		c.t.Errorf("policies %q", named)
	}
	for _, m := range c.list(answer, "Ratelimit", "r", "t") {
		if !slices.Contains(named, m.name) {
			c.t.Errorf("%q has no policy in %q", m.name, named)
		}
		if denied && (m.second < 1 || m.second > f.retryAfter) {
			c.t.Errorf("%+v lies after Retry-After: %d", m, f.retryAfter)
		}
		if denied && m.first > 0 {
			c.t.Errorf("%+v denied one", m)
		}
	}
}

type member struct {
	name          string
	first, second int64
}

// list reads a List of Strings with two Integers each.
func (c *client) list(answer *http.Response, field, first, second string) []member {
	c.t.Helper()
	list, err := httpsfv.UnmarshalList(answer.Header.Values(field))
	if err != nil || len(list) == 0 {
		c.t.Fatalf("%s: %q: %v", field, answer.Header.Values(field), err)
	}
	var members []member
	for _, m := range list {
		i, ok := m.(httpsfv.Item)
		if !ok {
			c.t.Fatalf("%s: %T; want an Item", field, m)
		}
		text, err := httpsfv.Marshal(i)
		if err != nil || !item.MatchString(text) {
			c.t.Fatalf("%s: %q is not as the draft has it: %v", field, text, err)
		}
		members = append(members, member{c.text(i.Value), c.integer(i.Params, first), c.integer(i.Params, second)})
	}
	return members
}

func (c *client) text(v any) string {
	c.t.Helper()
	s, ok := v.(string)
	if !ok {
		c.t.Fatalf("%T; want a String", v)
	}
	return s
}

func (c *client) integer(p *httpsfv.Params, name string) int64 {
	c.t.Helper()
	v, there := p.Get(name)
	n, ok := v.(int64)
	if !ok && (there || name != "t") {
		c.t.Fatalf("%s is a %T; want an Integer", name, v)
	}
	return n
}
