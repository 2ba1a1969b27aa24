package usage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// transcripts are answers in the published shapes of the providers, with what they have used.
var transcripts = map[string]Counts{
	"openai-chat.json":      {86, 300, 1920},
	"openai-chat.sse":       {86, 300, 1920},
	"openai-responses.json": {228, 52, 100},
	"openai-responses.sse":  {228, 52, 100},
	"anthropic.json":        {2343, 503, 1800},
	"anthropic.sse":         {2343, 503, 1800},
	"gemini.json":           {240, 421, 1024},
	"gemini.sse":            {240, 421, 1024},
	"gemini-array.json":     {240, 421, 1024},
}

func transcript(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// media returns the type that name ends with. Other names are types.
func media(name string) string {
	switch filepath.Ext(name) {
	case ".sse":
		return "text/event-stream"
	case ".json":
		return "application/json; charset=utf-8"
	}
	return name
}

// answer is a response with a body, of the type that name ends with.
func answer(name, encoding string, body io.Reader) *Body {
	h := http.Header{"Content-Type": {media(name)}}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	return NewBody(&http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(body)})
}

// seen reads the parts one after the other, until the error, and returns what was seen of them.
func seen(t *testing.T, name, encoding string, err error, parts ...[]byte) Answer {
	t.Helper()
	var from []io.Reader
	for _, p := range parts {
		from = append(from, bytes.NewReader(p))
	}
	if err != nil {
		from = append(from, iotest.ErrReader(err))
	}
	b := answer(name, encoding, io.MultiReader(from...))
	got, failed := io.ReadAll(b)
	if !bytes.Equal(got, bytes.Join(parts, nil)) || !errors.Is(failed, err) {
		t.Fatalf("%s: the body has changed: %q, %v", name, got, failed)
	}
	return b.Answer()
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// shape is an answer that somebody has met, with what it has used, or with what it is without that:
// failed, silent (complete JSON without usage) or unknown.
type shape struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Body   string   `json:"body"`
	Kind   string   `json:"kind"`
	Counts [3]int64 `json:"counts"` // input, output, cached
}

// shapes returns those of shapes.json, and the transcripts.
func shapes(t *testing.T) (list []shape) {
	t.Helper()
	if err := json.Unmarshal(transcript(t, "shapes.json"), &list); err != nil {
		t.Fatal(err)
	}
	for name, c := range transcripts {
		list = append(list, shape{
			Name: name, Type: media(name), Body: string(transcript(t, name)),
			Counts: [3]int64{c.Input, c.Output, c.Cached},
		})
	}
	return list
}

// Each token is counted once, wherever the answer is split, plain and compressed.
func TestShapes(t *testing.T) {
	for _, s := range shapes(t) {
		want := Answer{Failed: s.Kind == "failed", Silent: s.Kind == "silent"}
		if s.Kind == "" {
			want = Answer{Counts: Counts{s.Counts[0], s.Counts[1], s.Counts[2]}, Complete: true}
		}
		for encoding, content := range map[string][]byte{"": []byte(s.Body), "gzip": zipped(t, []byte(s.Body))} {
			for i := range len(content) + 1 {
				got := seen(t, s.Type, encoding, nil, content[:i], content[i:])
				if s.Kind == "unknown" {
					got.Counts = Counts{} // of the input
				}
				if got != want {
					t.Errorf("%s %s, split at %d: %+v; want %+v", encoding, s.Name, i, got, want)
					break
				}
			}
		}
		for i, weights := range []Cost{{Input: 1}, {Output: 1}, {Cached: 1}} {
			cost, known := weights.After(MaxCount, seen(t, s.Type, "", nil, []byte(s.Body)))
			if s.Kind == "" && (cost != s.Counts[i] || !known) || s.Kind == "failed" && cost != 0 {
				t.Errorf("%s costs %d by %+v", s.Name, cost, weights)
			}
		}
	}
}

// A hang-up never costs less than the estimate, and more if more was seen.
func TestHangUp(t *testing.T) {
	cost := Cost{Estimate: 700, Input: 1, Output: 4}
	for name, want := range transcripts {
		for encoding, content := range map[string][]byte{
			"": transcript(t, name), "gzip": zipped(t, transcript(t, name)),
		} {
			for i := range len(content) + 1 {
				for _, err := range []error{io.ErrUnexpectedEOF, nil} {
					a := seen(t, name, encoding, err, content[:i])
					got, known := cost.After(700, a)
					whole := cost.Input*want.Input + cost.Output*want.Output
					if known && (err != nil && got != whole || got > whole) || !known && (got < 700 || got > max(whole, 700)) {
						t.Fatalf("%s %s, %v after %d of %d: %d, %t", encoding, name, err, i, len(content), got, known)
					}
				}
			}
		}
	}
	a := seen(t, "anthropic.sse", "", io.ErrUnexpectedEOF, transcript(t, "anthropic.sse")[:400])
	if got, _ := cost.After(700, a); got != 2343+4 {
		t.Errorf("after message_start: %d of %+v", got, a)
	}
}

// Many clients read no further than the end of the document, or than [DONE].
func TestAnswersThatAreNotReadToTheirEnd(t *testing.T) {
	const ok = `{"usage":{"input_tokens":10,"output_tokens":5}}`
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"x.json", ok, true},
		{"x.json", "[" + ok, false},
		{"x.json", "[" + ok + "]", true},
		{"x.sse", "data: " + ok + "\n\n", false},
		{"x.sse", "data: " + ok + "\n\ndata: [DONE", false},
		{"x.sse", "data: " + ok + "\n\ndata: [DONE]", true},
		{"x.sse", "data: [DONE]\n\n", false},
		{"x.sse", "data: " + ok + "\n\ndata: {\"a\":\"DONE\"}\n\n", false},
		{"x.sse", "data: " + ok + "\n\ndata: {\"a\":[DONE]}\n\n", false},
		{"x.sse", "data: " + ok + "\n\ndata: \"[DONE]\"\n\n", false},
		{"x.sse", "data: " + ok + "\n\ndata: {\"type\":\"message_stop\"}", true},
		{"x.sse", "data: " + ok + "\n\ndata: {\"type\":\"message_stop\"", false},
		{"x.sse", "data: {\"message\":" + ok + "}\n\ndata: {\"type\":\"message_stop\"}", false},
		{"x.sse", "data: {\"type\":\"message_stop\"}", false},
		{"x.sse", "data: {\"type\":\"response.completed\",\"response\":" + ok + "}", true},
		{"x.sse", "data: {\"type\":\"response.failed\",\"response\":" + ok + "}", true},
		{"x.sse", "data: {\"type\":\"response.created\",\"response\":" + ok + "}", false},
		{"x.sse", "data: {\"response\":{\"type\":\"response.completed\"}}\n\ndata:" + ok + "\n\n", false},
		{"x.sse", `data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":3}}`, true},
		{"x.sse", `data: {"candidates":[{"finishReason":null}],"usageMetadata":{"candidatesTokenCount":3}}`, false},
		{"application/x-ndjson", "{\"done\":false}\n", false},
		{"application/x-ndjson", ok + "\n", false},
		{"application/x-ndjson", ok + "\n{\"a\":[", false},
		{"text/plain", ok, false},
		{"x.sse", "data: {\"done\":true," + ok[1:] + "\n\n", false},
		{"application/x-ndjson", "{\"done\":false}\n{\"done\":true,\"eval_count\":3}", true},
	} {
		got := seen(t, c.name, "", io.ErrUnexpectedEOF, []byte(c.text))
		if got.Complete != c.want {
			t.Errorf("%q: %+v", c.text, got)
		}
	}
	if got := seen(t, "x.json", "gzip", io.ErrUnexpectedEOF, zipped(t, []byte(ok))[:60]); got.Complete {
		t.Errorf("a part of a compressed document: %+v", got)
	}
}

func TestMalice(t *testing.T) {
	const ok = `{"usage":{"input_tokens":10,"output_tokens":5}}`
	complete := func(in, out, cached int64) Answer { return Answer{Counts: Counts{in, out, cached}, Complete: true} }
	for text, want := range map[string]Answer{
		ok:                    complete(10, 5, 0),
		"\ufeff" + ok + "   ": complete(10, 5, 0),
		`{"a":"\"{[","usage":{"input_tokens":12}}`: complete(12, 0, 0),
		// The last number of a field counts.
		ok + "\n" + `{"usage":{"output_tokens":6}}`:                                 complete(10, 6, 0),
		ok + "\n" + `{"usage":{"output_tokens":0}}`:                                 complete(10, 5, 0),
		`{"usage":{"input_tokens":1,"input_tokens":2},"usage":{"output_tokens":3}}`: complete(2, 3, 0),
		// More from a cache than there was.
		`{"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":9}}}`: complete(0, 0, 5),
		// Numbers that are none of tokens.
		`{"usage":{"input_tokens":10,"output_tokens":-5}}`:                               {},
		`{"usage":{"input_tokens":10,"output_tokens":+5}}`:                               {},
		`{"usage":{"input_tokens":10,"output_tokens":5.5}}`:                              {},
		`{"usage":{"input_tokens":10,"output_tokens":5e3}}`:                              {},
		`{"usage":{"input_tokens":10,"output_tokens":true}}`:                             {},
		`{"usage":{"input_tokens":10,"output_tokens":9007199254740992}}`:                 {},
		`{"usage":{"input_tokens":10,"output_tokens":` + strings.Repeat("0", 40) + `}}`:  {},
		`{"usage":{"input_tokens":10,"output_tokens":` + strings.Repeat("9", 1e6) + `}}`: {},
		`{"usage":{"input_tokens":9007199254740991,"cache_creation_input_tokens":9007199254740991,` +
			`"output_tokens":9007199254740991,"cache_read_input_tokens":9007199254740991}}`: complete(MaxCount, MaxCount, MaxCount),
		// Other places, and other things at the place.
		`{"usage":null}`:                                                {},
		`{"usage":{"input_tokens":null}}`:                               {},
		`{"usage":{"input_tokens":"12"}}`:                               {},
		`{"usage":{"input_tokens":{"a":12}}}`:                           {},
		`{"usage":{"input_tokens":[12]}}`:                               {},
		`{"usage":[{"input_tokens":12}]}`:                               {},
		`{"usage":{"x":{"input_tokens":12}}}`:                           {},
		`{"x":{"usage":{"input_tokens":12}}}`:                           {},
		`[[{"usage":{"input_tokens":12}}]]`:                             {},
		`{"response":{"usage":{"input_tokens":12}}}`:                    {}, // no event
		`{"message":{"usage":{"input_tokens":12}}}`:                     {},
		`{"a":"\",\"usage\":{\"input_tokens\":12}"}`:                    {},
		`{"a":"\\","b":"{\"usage\":{\"input_tokens\":12}}"}`:            {},
		`{"us\u0061ge":{"input_tokens":12}}`:                            {},
		`{"` + strings.Repeat("u", 1e6) + `usage":{"input_tokens":12}}`: {},
		`"usage":{"input_tokens":12}`:                                   {}, // no document
		`{"usage":{"input_tokens":12}`:                                  {}, // it has not ended
		strings.Repeat("[", 1e6) + ok:                                   {},
		strings.Repeat("}", 1e6) + ok:                                   complete(10, 5, 0),
		"":                                                              {}, "\x00": {}, "}": {}, "]": {}, ":": {}, ",": {}, `"`: {}, `\`: {}, "12": {},
	} {
		got := seen(t, "x.json", "", nil, []byte(text))
		if got.Silent = false; got != want {
			t.Errorf("%.80q: %+v; want %+v", text, got, want)
		}
	}
	for text, want := range map[string]Answer{
		"data:" + ok:                       complete(10, 5, 0),
		"\ufeffdata:" + ok:                 complete(10, 5, 0),
		"\n\ufeffdata:" + ok:               {},
		"data: " + ok + "\r\rdata: [DONE]": complete(10, 5, 0),
		"data: {\"usage\":\r\ndata: {\"input_tokens\": 1\r\ndata: }}\r\n\r\n": complete(1, 0, 0),
		"data: {\"usage\":{\"input_tokens\":1\ndata: 2}}":                     complete(2, 0, 0),
		"data: {\"usage\":\n\ndata:{\"input_tokens\":1}}\n\n":                 {}, // two events
		"datum: " + ok + "\n\n":                                               {},
		" data: " + ok + "\n\n":                                               {},
		": data: " + ok + "\n\n":                                              {},
		"event: data: " + ok + "\n\n":                                         {},
		"data: \"data: " + ok + "\n\n":                                        {},
		ok:                                                                    {},
		"data: {\"message\":" + ok + "}\n\n":                                  {Counts: Counts{10, 5, 0}},
	} {
		if got := seen(t, "x.sse", "", nil, []byte(text)); got != want {
			t.Errorf("%q: %+v; want %+v", text, got, want)
		}
	}
}

func TestAnswersThatAreNotRead(t *testing.T) {
	content := transcript(t, "openai-chat.json")
	b := answer("x.json", "br", bytes.NewReader(content))
	_, _ = io.Copy(io.Discard, b)
	if got := b.Answer(); got != (Answer{}) {
		t.Errorf("br: %+v", got)
	}
	b = NewBody(&http.Response{
		StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"audio/mpeg"}},
		Body: io.NopCloser(bytes.NewReader(content)),
	})
	_, _ = io.Copy(io.Discard, b)
	if got := b.Answer(); got != (Answer{Failed: true}) {
		t.Errorf("of sound: %+v", got)
	}
	if got := seen(t, "x.json", "gzip", nil, content); got != (Answer{}) {
		t.Errorf("not compressed: %+v", got)
	}
	damaged := zipped(t, content)
	damaged[len(damaged)-6] ^= 1 // of the checksum
	if got := seen(t, "x.json", "gzip", nil, damaged); got.Complete {
		t.Errorf("damaged: %+v", got)
	}
	b = answer("x.json", "gzip", bytes.NewReader(zipped(t, content)))
	if got := b.Answer(); got != (Answer{}) {
		t.Errorf("closed at once: %+v", got)
	}
	_, _ = io.Copy(io.Discard, b) // which a client may still do
}

// endless is a body that is made while it is read.
type endless struct {
	begin, middle, end string
	repeat             int
}

func (e *endless) Read(p []byte) (int, error) {
	switch {
	case e.begin != "":
		n := copy(p, e.begin)
		e.begin = e.begin[n:]
		return n, nil
	case e.repeat > 0:
		e.repeat--
		return copy(p, e.middle), nil
	case e.end != "":
		n := copy(p, e.end)
		e.end = e.end[n:]
		return n, nil
	}
	return 0, io.EOF
}

// allocated returns the bytes that f allocates in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const usageEnd = `"usage":{"prompt_tokens":7,"completion_tokens":3}}`

// 100 MB pass in constant memory: as one string, as one name, as many values, deep, and as events.
// With -short it is 10 MB.
func TestLargeAnswers(t *testing.T) {
	const part = 1 << 12 // io.Copy reads twice as much
	size := 100_000_000
	if testing.Short() {
		size /= 10
	}
	for _, c := range []struct{ kind, begin, middle, end string }{
		{"x.json", `{"a":"`, strings.Repeat("x", part), `",` + usageEnd},
		{"x.json", `{"`, strings.Repeat("x", part), `":1,` + usageEnd},
		{"x.json", `{"a":[`, strings.Repeat(`1,"usage",`, part/10), `1],` + usageEnd},
		{"x.json", `{`, strings.Repeat(`"usage":{"input_tokens_details":{"x":1}},`, part/41), usageEnd},
		{"x.sse", ``, strings.Repeat("data: {\"usage\":null}\n\n", part/22), "data: {" + usageEnd + "\n\n"},
		{"x.sse", ``, strings.Repeat("x", part), "\ndata: {" + usageEnd + "\n\n"},
	} {
		var a Answer
		total := allocated(func() {
			b := answer(c.kind, "", &endless{c.begin, c.middle, c.end, size / len(c.middle)})
			if _, err := io.Copy(io.Discard, b); err != nil {
				t.Fatal(err)
			}
			a = b.Answer()
		})
		if a != (Answer{Counts: Counts{7, 3, 0}, Complete: true}) || total > 128<<10 {
			t.Errorf("%s of %.30q: %+v, %d bytes allocated", c.kind, c.middle, a, total)
		}
	}
}

// A bomb costs what its bytes on the wire are worth.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.Copy(z, &endless{`{"a":"`, strings.Repeat("x", 1<<14), `",` + usageEnd, 100e6 >> 14})
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	r := newReader(false)
	u := newUnzip(r)
	total := allocated(func() {
		u.push(b.Bytes())
		if u.close() {
			t.Error("a bomb was read")
		}
	})
	if got := r.counts(); got != (Counts{}) || total > 256<<10 {
		t.Errorf("%d bytes: %+v, %d allocated", b.Len(), got, total)
	}
	if !r.scanner.quoted {
		t.Error("nothing was read")
	}
	got := seen(t, "x.json", "gzip", nil, b.Bytes())
	if got.Complete {
		t.Errorf("%+v", got)
	}
	// What shrinks to a fiftieth is read.
	var text strings.Builder
	rng := rand.New(rand.NewPCG(1, 2))
	for text.Len() < 8<<20 {
		text.WriteString(`data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"`)
		text.WriteByte(byte('a' + rng.IntN(26)))
		text.WriteString("\"}}],\"usage\":null}\n\n")
	}
	text.WriteString("data: {" + usageEnd + "\n\n")
	small := zipped(t, []byte(text.String()))
	if got := seen(t, "x.sse", "gzip", nil, small); !got.Complete {
		t.Errorf("%d of %d: %+v", len(small), text.Len(), got)
	}
}

func FuzzUsage(f *testing.F) {
	for name := range transcripts {
		f.Add(transcript(f, name), strings.HasSuffix(name, ".sse"), uint(100))
	}
	f.Fuzz(func(t *testing.T, content []byte, stream bool, at uint) {
		whole, parts := newReader(stream), newReader(stream)
		whole.push(content)
		cut := int(at % uint(len(content)+1))
		parts.push(content[:cut])
		parts.push(content[cut:])
		a, b := whole.counts(), parts.counts()
		if a != b || whole.counted.final != parts.counted.final {
			t.Errorf("%+v in one part, %+v in two", a, b)
		}
		for _, n := range []int64{a.Input, a.Output, a.Cached} {
			if n < 0 || n > MaxCount {
				t.Errorf("%+v", a)
			}
		}
		cost := Cost{Estimate: 1, Input: MaxWeight, Output: MaxWeight, Cached: MaxWeight}
		if got := cost.of(a); got < 0 || got > MaxCount {
			t.Errorf("%+v cost %d", a, got)
		}
		r := said(string(content))
		if got := cost.Before(r); got < 1 || got > MaxCount {
			t.Errorf("%+v is estimated at %d", r, got)
		}
		name := "x.json"
		if stream {
			name = "x.sse"
		}
		_ = seen(t, name, "gzip", nil, content)
	})
}
