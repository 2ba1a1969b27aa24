package usage

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBefore(t *testing.T) {
	cost := Cost{Estimate: 2000, Input: 1, Output: 4}
	for text, want := range map[string]int64{
		``:                              2000,
		`{"model":"m"}`:                 2000,
		`{"max_tokens":100}`:            405, // 18 bytes are 5 tokens
		`{"max_completion_tokens":100}`: 408,
		`{"max_output_tokens":100}`:     407,
		`{"generationConfig":{"maxOutputTokens":100}}`:    411,
		`{"generation_config":{"max_output_tokens":100}}`: 412,
		`{"max_tokens":0}`:                  4,
		`{"max_tokens":1,"max_tokens":100}`: 409,
		`{"max_tokens":100,"max_tokens":1}`: 409,
		`{"max_tokens":100,"messages":[`:    408, // cut off
		`{"max_tokens":-1}`:                 2000,
		`{"max_tokens":1.5}`:                2000,
		`{"max_tokens":"100"}`:              2000,
		// What a server may read in another way.
		`{"max_tokens":1,"max\u005ftokens":100}`:                           2000,
		`{"max\u005ftokens":100,"max_tokens":1}`:                           2000,
		`{"max_tokens":1,"max_to\u212aens":100}`:                           2000,
		"{\"max_tokens\":1,\"max_to\u212aens\":100}":                       2000,
		`{"max_tokens":1,"Max_Tokens":100}`:                                409,
		`{"max_tokens":1,"max_completion_tokens":"100"}`:                   2000,
		`{"max_tokens":1,"max_completion_tokens":1e2}`:                     2000,
		`{"max_tokens":1,"max_completion_tokens":-1}`:                      2000,
		`{"max_tokens":1,"max_completion_tokens":null}`:                    16,
		`{"max_tokens":1,"generation\u0043onfig":{"maxOutputTokens":100}}`: 2000,
		`{"max_tokens":1,"generationConfig":{"max\u004futput":1}}`:         2000,
		`{"max_tokens":1,"tools":[{"caf\u00e9":{"caf\u00e9":1}}]}`:         18,
		`{"max_tokens":1,"user":"caf\u00e9 \"max_tokens\":9"}`:             17,
		`{"max_tokens":[100]}`:                                             2000,
		`{"max_tokens":9007199254740992}`:                                  2000,
		`{"max_tokens":9007199254740991}`:                                  MaxCount,
		`{"messages":[{"max_tokens":100}]}`:                                2000,
		`{"a":"{\"max_tokens\":100}"}`:                                     2000,
		`{"maxOutputTokens":100}`:                                          2000,
		"\x1f\x8b\x08{\"max_tokens":                                        2000,
	} {
		if got := cost.Before(read([]byte(text), -1)); got != want {
			t.Errorf("%s: %d; want %d", text, got, want)
		}
	}
	if got := (Cost{Estimate: 5, Cached: 1}).Before(Request{Bounded: true, MaxOutput: 9}); got != 1 {
		t.Errorf("of cached tokens only: %d", got)
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
		{Answer{used, true, false}, 36, true},
		{Answer{used, true, true}, 36, true},
		{Answer{Counts{}, true, false}, 0, true},
		{Answer{used, false, false}, 100, false},
		{Answer{Counts{Output: 50}, false, false}, 200, false},
		{Answer{}, 100, false},
		{Answer{Failed: true}, 0, false},
		{Answer{used, false, true}, 100, false},
		{Answer{Counts{MaxCount, MaxCount, MaxCount}, true, false}, MaxCount, true},
	} {
		if got, known := cost.After(100, c.seen); got != c.want || known != c.known {
			t.Errorf("%+v: %d, %t", c.seen, got, known)
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
			text := []byte(`{"max_tokens":7,"a":"` + strings.Repeat("x", size))
			from := iotest.HalfReader(bytes.NewReader(text))
			if end != nil {
				from = io.MultiReader(from, &once{end})
			}
			r, body := Peek(io.NopCloser(from), -1)
			want := Request{Bounded: true, MaxOutput: 7, Bytes: int64(min(len(text), maxPeek))}
			if r != want {
				t.Errorf("%d bytes: %+v; want %+v", size, r, want)
			}
			got, err := io.ReadAll(body)
			if !bytes.Equal(got, text) || !errors.Is(err, end) {
				t.Errorf("%d bytes: %d replayed, %v", size, len(got), err)
			}
		}
	}
	// What was read to its end is not read again, because a server may have closed it.
	_, body := Peek(io.NopCloser(&closing{text: "{}", err: broken}), -1)
	if got, err := io.ReadAll(body); string(got) != "{}" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if r, _ := Peek(io.NopCloser(strings.NewReader("{}")), 100e6); r.Bytes != 100e6 {
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
