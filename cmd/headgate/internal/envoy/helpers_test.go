package envoy

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"go.yaml.in/yaml/v3"
)

// fixture is a limiter over a Memory store.
type fixture struct {
	*Limiter
	t     *testing.T
	stats *Statistics
	resp  Response
}

func newFixture(t *testing.T, o Options, text string) *fixture {
	t.Helper()
	return newFixtureWith(t, headgate.NewMemorySize(1000), nil, o, text)
}

func newFixtureWith(
	t *testing.T, store, perSecond headgate.Store, o Options, text string,
) *fixture {
	t.Helper()
	s := &Statistics{}
	f := &fixture{t: t, stats: s, Limiter: New(store, perSecond, o, s)}
	f.Use(configOf(t, text))
	return f
}

// parseFile is ParseDomain for the text of a file.
func parseFile(file string, text []byte) (*Domain, []error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, []error{err}
	}
	return ParseDomain(file, &doc)
}

func configOf(t *testing.T, text string) *Config {
	t.Helper()
	d, errs := parseFile("f.yaml", []byte(text))
	if errs != nil {
		t.Fatal(errs)
	}
	c, err := NewConfig([]*Domain{d}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// desc is the descriptor of "key=value, key=value".
func desc(text string) Descriptor {
	var d Descriptor
	for e := range strings.SplitSeq(text, ", ") {
		key, value, _ := strings.Cut(e, "=")
		d.Entries = append(d.Entries, Entry{key, value})
	}
	return d
}

func hits(n uint64, d Descriptor) Descriptor {
	d.Hits, d.HasHits = n, true
	return d
}

func (f *fixture) ask(ds ...Descriptor) *Response {
	f.t.Helper()
	if err := f.Decide(f.t.Context(), &Request{Domain: "d", Descriptors: ds}, &f.resp); err != nil {
		f.t.Fatal(err)
	}
	return &f.resp
}

// codes is what the answer says in short: the overall code, then each code and what remains.
func codes(r *Response) string {
	short := func(c Code) string { return [...]string{"?", "ok", "over"}[c] }
	var b strings.Builder
	b.WriteString(short(r.Code) + ": ")
	for i, s := range r.Statuses {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(short(s.Code))
		if s.HasLimit {
			b.WriteString("/" + string(appendNumber(nil, s.Remaining)))
		}
	}
	return b.String()
}

func appendNumber(b []byte, n uint32) []byte {
	if n >= 10 {
		b = appendNumber(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

// fails is the error of a request.
func (f *fixture) fails(r Request) string {
	f.t.Helper()
	err := f.Decide(f.t.Context(), &r, &f.resp)
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[RequestError](err); !ok || len(f.resp.Statuses) > 0 {
		f.t.Errorf("%v is a %T, with the answer %v", err, err, f.resp)
	}
	return err.Error()
}

func (f *fixture) want(want string, ds ...Descriptor) {
	f.t.Helper()
	if got := codes(f.ask(ds...)); got != want {
		f.t.Errorf("got %s; want %s", got, want)
	}
}

// counted checks the counters of path that are not 0: "total_hits=1 within_limit=1".
func (f *fixture) counted(path, want string) {
	f.t.Helper()
	var got []string
	f.stats.Visit(func(c Counter) {
		if c.Path == path && c.Domain == "d" && c.Value > 0 {
			got = append(got, c.Name+"="+string(appendNumber(nil, uint32(c.Value))))
		}
	})
	if text := strings.Join(got, " "); text != want {
		f.t.Errorf("%s counted %q; want %q", path, text, want)
	}
}
