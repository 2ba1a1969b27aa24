package usage

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// said is what a body says that a server reads as it is.
func said(text string) Request {
	r := Request{Bytes: int64(len(text))}
	r.read(nil, []byte(text), true)
	return r
}

func TestBefore(t *testing.T) {
	const unbounded = 0
	cost := Cost{Estimate: 2000, Input: 1, Output: 4}
	for text, output := range map[string]int64{
		`{"model":"m"}`:                                   unbounded,
		`{"max_tokens":100}`:                              100,
		`{"max_completion_tokens":100}`:                   100,
		`{"max_output_tokens":100}`:                       100,
		`{"generationConfig":{"maxOutputTokens":100}}`:    100,
		`{"generation_config":{"max_output_tokens":100}}`: 100,
		`{"inferenceConfig":{"maxTokens":100}}`:           100,
		`{"options":{"num_predict":100}}`:                 100,
		`{"options":{"num_predict":-1}}`:                  unbounded,
		`{"max_tokens":0}`:                                unbounded,
		`{"max_tokens":null}`:                             unbounded,
		`{"max_tokens":100.0}`:                            100,
		`{"max_tokens":-1}`:                               unbounded,
		`{"max_tokens":1.5}`:                              unbounded,
		`{"max_tokens":"100"}`:                            unbounded,
		// What a server may read in another way.
		`{"max_tokens":100,"messages":[`:                                   unbounded,
		` {"max_tokens":100}`:                                              unbounded,
		"\ufeff{\"max_tokens\":100}":                                       unbounded,
		`{"max_tokens":100}{"max_tokens":200}`:                             unbounded,
		"{\"max_tokens\":100}\x00":                                         unbounded,
		`[{"max_tokens":100}]`:                                             unbounded,
		`{"model":"m" /* "max_tokens":1 */}`:                               unbounded,
		`{max_tokens:100,"max_tokens":1}`:                                  unbounded,
		`{"options":{num_predict:100},"max_tokens":1}`:                     unbounded,
		`{'max_tokens':100,"max_tokens":1}`:                                unbounded,
		`{"max_tokens":1,"max\u005ftokens":100}`:                           unbounded,
		`{"max\u005ftokens":100,"max_tokens":1}`:                           unbounded,
		`{"max_tokens":1,"max_to\u212aens":100}`:                           unbounded,
		"{\"max_tokens\":1,\"max_to\u212aens\":100}":                       unbounded,
		`{"MAX_TOKENS":1}`:                                                 unbounded,
		`{"max_tokens":1,"Max_Tokens":1}`:                                  unbounded,
		`{"max_tokens":100,"max_tokens":1}`:                                unbounded,
		`{"max_tokens":1,"max_tokens":null}`:                               unbounded,
		`{"max_tokens":{},"max_tokens":1}`:                                 unbounded,
		`{"options":{"num_predict":1},"options":null}`:                     unbounded,
		`{"generationConfig":{"maxOutputTokens":1},"generationConfig":{}}`: unbounded,
		`{"max_tokens":1,"a":1/*"*/,'max_tokens':100000,'b':1/*"1*/}`:      unbounded,
		`{"max_tokens":1,"max_output_tokens":0}`:                           unbounded,
		`{"max_tokens":1,"max_completion_tokens":"100"}`:                   unbounded,
		`{"max_tokens":1,"max_completion_tokens":1e2}`:                     unbounded,
		`{"max_tokens":1,"max_completion_tokens":-1}`:                      unbounded,
		`{"max_tokens":1,"max_completion_tokens":null}`:                    1,
		`{"max_tokens":1,"generation\u0043onfig":{"maxOutputTokens":100}}`: unbounded,
		`{"max_tokens":1,"generationConfig":{"max\u004futput":1}}`:         unbounded,
		`{"max_tokens":1,"tools":[{"caf\u00e9":{"caf\u00e9":1}}]}`:         1,
		`{"max_tokens":1,"user":"caf\u00e9 \"max_tokens\":9"}`:             1,
		`{"max_tokens":[100]}`:                                             unbounded,
		`{"max_tokens":9007199254740992}`:                                  unbounded,
		`{"max_tokens":9007199254740991}`:                                  MaxCount,
		`{"messages":[{"max_tokens":100}]}`:                                unbounded,
		`{"a":"{\"max_tokens\":100}"}`:                                     unbounded,
		`{"maxOutputTokens":100}`:                                          unbounded,
	} {
		want := int64(len(text)+3)/4 + 2000
		if output != unbounded {
			want = min(int64(len(text)+3)/4+min(4*output, MaxCount), MaxCount)
		}
		if got := cost.Before(said(text)); got != want {
			t.Errorf("%s: %d; want %d", text, got, want)
		}
	}
	for _, c := range []struct {
		cost Cost
		text string
		want int64
	}{
		{cost, ``, 2000},
		{Cost{Estimate: 5, Cached: 1}, `{"max_tokens":9}`, 1},
		// A rule that names the field believes no other.
		{Cost{Estimate: 5, Output: 1, Bound: "max_tokens"}, `{"max_tokens":9,"max_output_tokens":99}`, 9},
		{Cost{Estimate: 5, Output: 1, Bound: "max_tokens"}, `{"max_tokens":9,"max_output_tokens":"x"}`, 9},
		{Cost{Estimate: 5, Output: 1, Bound: "max_tokens"}, `{"max_output_tokens":1}`, 5},
		{Cost{Estimate: 5, Output: 1, Bound: "max_tokens"}, `{"max_tokens":-1}`, 5},
		{Cost{Estimate: 5, Output: 1, Bound: "maxOutputTokens"}, `{"generationConfig":{"max_output_tokens":9}}`, 9},
	} {
		if got := c.cost.Before(said(c.text)); got != c.want {
			t.Errorf("%+v of %s: %d; want %d", c.cost, c.text, got, c.want)
		}
	}
}

// A bound is believed only from a body that each server reads in the same way.
func TestBodiesThatAreNotBelieved(t *testing.T) {
	const utf16 = "{\x00\"\x00x\x00\"\x00:\x00\"\x00a\",\"max_tokens\":1,\"y\":\"zz\"\x00}\x00"
	for _, c := range []struct {
		kind, encoding, body string
		want                 bool
	}{
		{"", "", `{"max_tokens":1}`, true},
		{"application/json; charset=UTF-8", "", `{"max_tokens":1}`, true},
		{"application/vnd.api+json", "", `{"max_tokens":1}`, true},
		{"application/json; charset=utf-16le", "", `{"max_tokens":1}`, false},
		{"application/json; charset=utf-7", "", `{"max_tokens":1,"+AG0-+AGE-x_tokens":400000}`, false},
		{"application/json", "gzip", `{"max_tokens":1}`, false},
		{"application/json", "identity", `{"max_tokens":1}`, false},
		{"application/json", "", utf16, false},
		{"text/plain", "", `{"max_tokens":1}`, false},
		{"multipart/form-data; boundary=x", "", "--x\r\n\r\n{\"max_tokens\":1}\r\n--x--", false},
		{"/", "", `{"max_tokens":1}`, false},
	} {
		h := http.Header{}
		if c.kind != "" {
			h.Set("Content-Type", c.kind)
		}
		if c.encoding != "" {
			h.Set("Content-Encoding", c.encoding)
		}
		r, _, _ := Peek(h, io.NopCloser(strings.NewReader(c.body)), -1)
		if _, found := r.bound(""); found != c.want || r.Bytes != int64(len(c.body)) {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

// What else a request says. Of two values, and of two spellings, servers take one or the other.
func TestDetails(t *testing.T) {
	for text, want := range map[string]Details{
		`{}`:                                                 {},
		`{"model":"gpt-\u0035","stream":1}`:                  {Model: "gpt-5"},
		`{"model":"a","model":"b"}`:                          {},
		`{"model":"a","Model":"b"}`:                          {},
		`{"model":"a","mod\u0065l":"b"}`:                     {},
		`{"stream":true,"stream_options":null}`:              {Stream: true, StreamOptions: true},
		`{"stream":true,"stream_options":{"a":1}}`:           {Stream: true, StreamOptions: true},
		`{"model":5,"stream":true}`:                          {Stream: true},
		`{"a":{"model":"m"}}`:                                {},
		`{"model":"` + strings.Repeat("m", 1000) + `"`:       {},
		`{"model":"m" /* "model":"n" */}`:                    {},
		`{"model":"` + strings.Repeat("m", 1000) + `"}`:      {Model: strings.Repeat("m", 1000)},
		`{"model":"m","messages":[{"content":"\u00e9\"}"}]}`: {Model: "m"},
	} {
		r := said(text)
		if got := r.Details(); got != want {
			t.Errorf("%s: %+v; want %+v", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		`{"background":true}`: true, `{"background":true,"background":false}`: true,
		`{"background":false}`: false, `{"a":{"background":true}}`: false, `{"background":null}`: false,
		"\ufeff{\"background\":true}": true, `{"backgroun\u0064":true}`: true, `{"Background":true}`: true,
		`{"background":true,"a":[`: true, `{"caf\u00e9":1}`: false,
	} {
		if got := said(text).Background; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAfter(t *testing.T) {
	cost := Cost{Estimate: 100, Input: 1, Output: 4, Cached: 2}
	used := Counts{Input: 10, Output: 5, Cached: 3}
	for _, c := range []struct {
		seen  Answer
		want  int64
		known bool
	}{
		{Answer{Counts: used, Complete: true}, 36, true},
		{Answer{Counts: used, Complete: true, Failed: true}, 36, true},
		{Answer{Complete: true}, 0, true},
		{Answer{Counts: used}, 100, false},
		{Answer{Counts: Counts{Output: 50}}, 200, false},
		{Answer{}, 100, false},
		{Answer{Failed: true}, 0, false},
		{Answer{Silent: true}, 100, false},
		{Answer{Counts: used, Failed: true}, 100, false},
		{Answer{Counts: Counts{MaxCount, MaxCount, MaxCount}, Complete: true}, MaxCount, true},
	} {
		if got, known := cost.After(100, c.seen); got != c.want || known != c.known {
			t.Errorf("%+v: %d, %t", c.seen, got, known)
		}
	}
	cost.RefundUnknown = true
	for seen, want := range map[Answer]int64{{Silent: true}: 0, {}: 100} {
		if got, known := cost.After(100, seen); got != want || known {
			t.Errorf("%+v: %d, %t", seen, got, known)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, c := range map[string]Cost{
		"": {Estimate: 1, Cached: MaxWeight},
		"estimate is 0; want 1 to 9007199254740991":                {Input: 1},
		"estimate is 9007199254740992; want 1 to 9007199254740991": {Estimate: MaxCount + 1, Input: 1},
		"output is -1; want 0 to 1000000":                          {Estimate: 1, Input: 1, Output: -1},
		"cached is 1000001; want 0 to 1000000":                     {Estimate: 1, Cached: MaxWeight + 1},
		"input, output and cached are 0; want a weight above 0":    {Estimate: 1},
		`bound is "tokens"; want one of maxOutputTokens, maxTokens, max_completion_tokens, ` +
			`max_output_tokens, max_tokens, num_predict`: {Estimate: 1, Input: 1, Bound: "tokens"},
	} {
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: %q; want %q", c, got, want)
		}
	}
}

func TestUnsent(t *testing.T) {
	_, err := net.Dial("tcp", "127.0.0.1:0") //nolint:noctx // it fails at once
	if !Unsent(err) || Unsent(io.EOF) || Unsent(&net.OpError{Op: "read", Err: io.EOF}) {
		t.Errorf("%v", err)
	}
}

// The body that was peeked at is the same, whatever its size and wherever it ends.
func TestPeek(t *testing.T) {
	broken := errors.New("broken")
	for _, size := range []int{0, 1, 1000, maxPeek - 1, maxPeek, maxPeek + 1, 3 * maxPeek} {
		for _, end := range []error{nil, broken} {
			text := []byte(`{"max_tokens":7,"a":"` + strings.Repeat("x", size) + `"}`)
			from := iotest.HalfReader(bytes.NewReader(text))
			if end != nil {
				from = io.MultiReader(from, &once{end})
			}
			r, body, _ := Peek(nil, io.NopCloser(from), -1)
			most, found := r.bound("")
			if whole := len(text) < maxPeek; found != whole || found && most != 7 ||
				r.Bytes != int64(min(len(text), maxPeek)) {
				t.Errorf("%d bytes: %+v", size, r)
			}
			got, err := io.ReadAll(body)
			if !bytes.Equal(got, text) || !errors.Is(err, end) {
				t.Errorf("%d bytes: %d replayed, %v", size, len(got), err)
			}
		}
	}
	// What was read to its end is not read again, because a server may have closed it.
	_, body, _ := Peek(nil, io.NopCloser(&closing{text: "{}", err: broken}), -1)
	if got, err := io.ReadAll(body); string(got) != "{}" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if r, _, _ := Peek(nil, io.NopCloser(strings.NewReader("{}")), 100e6); r.Bytes != 100e6 {
		t.Errorf("%+v", r)
	}
}

// once fails once, and ends afterwards, as a body of net/http may.
type once struct{ err error }

func (o *once) Read([]byte) (int, error) {
	if err := o.err; err != nil {
		o.err = nil
		return 0, err
	}
	return 0, io.EOF
}

// closing is a body that fails after its end.
type closing struct {
	text string
	err  error
}

func (c *closing) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, c.err
	}
	n := copy(p, c.text)
	c.text = ""
	return n, io.EOF
}
