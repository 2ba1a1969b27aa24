package usage

import (
	"bytes"
	"cmp"
	"errors"
	"io"
)

// Request is what a request says about how many tokens it may use.
type Request struct {
	Bounded   bool  // MaxOutput is known
	MaxOutput int64 // the largest of the bounds in the request
	Bytes     int64 // of the body
}

// maxPeek is how many bytes of a request are read for its bound.
const maxPeek = 1 << 20

// bounds are where requests bound the tokens of their answers.
var bounds = map[path]bool{
	{"max_tokens"}:            true,
	{"max_completion_tokens"}: true,
	{"max_output_tokens"}:     true,
	// Gemini accepts both spellings.
	{"generationConfig", "maxOutputTokens"}:    true,
	{"generationConfig", "max_output_tokens"}:  true,
	{"generation_config", "maxOutputTokens"}:   true,
	{"generation_config", "max_output_tokens"}: true,
}

var boundNames = namesOf(bounds)

// ErrStop is returned by a body that is not to be read further before it is passed on.
var ErrStop = errors.New("usage: the rest of the body is not read ahead")

// Peek reads what the request of body says, from the first MiB at most. Length is that of the body,
// or -1. It reads less if body returns ErrStop, and then finds no bound. The body that Peek returns
// is the whole one, with the error at which reading has stopped.
func Peek(body io.ReadCloser, length int64) (Request, io.ReadCloser) {
	start, err := io.ReadAll(io.LimitReader(body, maxPeek))
	rest, stopped := io.Reader(body), errors.Is(err, ErrStop)
	if !stopped && (err != nil || len(start) < maxPeek || int64(len(start)) == length) {
		rest = ended{cmp.Or(err, io.EOF)} // a server may have closed the body meanwhile
	}
	said := read(start, length)
	said.Bounded = said.Bounded && !stopped
	return said, replayed{io.MultiReader(bytes.NewReader(start), rest), body}
}

// read returns what the beginning of a body says. If a part of that is not clear, a server may read
// another bound, so that there is none.
func read(start []byte, length int64) Request {
	r := Request{Bytes: max(length, int64(len(start)))}
	s, isClear := scanner{names: boundNames, end: func() {}}, true
	s.value = func(at path, text []byte) {
		n, ok := count(text)
		switch {
		case at[0] == unclear, at[0] != "" && at[1] == unclear:
			isClear = false
		case !bounds[at], string(text) == "null":
		default:
			r.Bounded, r.MaxOutput, isClear = true, max(r.MaxOutput, n), isClear && ok
		}
	}
	s.push(start)
	r.Bounded = r.Bounded && isClear
	return r
}

// replayed is a body of which a part has been read.
type replayed struct {
	io.Reader
	io.Closer
}

// ended is the rest of a body that was read to its end, or to an error.
type ended struct{ err error }

func (e ended) Read([]byte) (int, error) { return 0, e.err }
