package usage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Request is what a request says about how many tokens it may use. Only Bytes is known of a body
// that a server may read in another way: one that is not JSON in UTF-8 as it is, or is longer than
// the first MiB.
type Request struct {
	Bytes      int64  // of the body
	Model      string // that is asked
	Background bool   // another request will get the answer
	Stream     bool   // the answer is a stream, and
	Options    bool   // the request has options for it

	bounds map[string]int64 // of the answer, by the last of their names; -1: a server may read another
}

// maxPeek is how many bytes of a request are read for its bound.
const maxPeek = 1 << 20

// bounds are where requests bound the tokens of their answers, by the names that rules have for
// them. Gemini accepts two spellings.
var (
	boundPaths = map[string]string{
		"max_tokens": "max_tokens", "max_completion_tokens": "max_completion_tokens",
		"max_output_tokens": "max_output_tokens",
		"maxOutputTokens": "generationConfig.maxOutputTokens generationConfig.max_output_tokens " +
			"generation_config.maxOutputTokens generation_config.max_output_tokens",
		"maxTokens": "inferenceConfig.maxTokens", "num_predict": "options.num_predict",
	}
	bounds     = pathsTo(boundPaths)
	boundNames = namesOf(bounds)
)

// Bounds are the names of the fields that can bound an answer.
func Bounds() []string { return slices.Sorted(maps.Keys(boundPaths)) }

// ErrStop is returned by a body that is not to be read further before it is passed on.
var ErrStop = errors.New("usage: the rest of the body is not read ahead")

// Peek reads what the request of body says, from the first MiB at most. Length is that of the body,
// or -1. It reads less if body returns ErrStop, and then finds only Bytes. The body that Peek
// returns is the whole one, with the error at which reading has stopped.
func Peek(h http.Header, body io.ReadCloser, length int64) (Request, io.ReadCloser) {
	start, err := io.ReadAll(io.LimitReader(body, maxPeek))
	r, rest := Request{Bytes: max(length, int64(len(start)))}, io.Reader(body)
	whole := err != nil || len(start) < maxPeek || int64(len(start)) == length
	if whole && !errors.Is(err, ErrStop) {
		rest = ended{cmp.Or(err, io.EOF)} // a server may have closed the body meanwhile
		r.read(h, start)
	}
	return r, replayed{io.MultiReader(bytes.NewReader(start), rest), body}
}

// isPlain reports whether h is that of a body of JSON in UTF-8, without compression.
func isPlain(h http.Header) bool {
	media, parameters, err := mime.ParseMediaType(cmp.Or(h.Get("Content-Type"), "application/json"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) &&
		strings.EqualFold(cmp.Or(parameters["charset"], "utf-8"), "utf-8") &&
		len(h["Content-Type"]) < 2 && len(h["Content-Encoding"]) == 0
}

// read reads what a whole body says, if it is an object.
func (r *Request) read(h http.Header, body []byte) {
	var said struct {
		Model      string
		Background bool
		Stream     bool
		Options    *struct{} `json:"stream_options"`
	}
	if !isPlain(h) || !bytes.HasPrefix(body, []byte("{")) || json.Unmarshal(body, &said) != nil {
		return
	}
	r.Model, r.Background = said.Model, said.Background
	r.Stream, r.Options = said.Stream, said.Options != nil
	found, isClear := make(map[string]int64), true
	s := scanner{names: boundNames, end: func() {}}
	s.value = func(at path, text []byte, quoted bool) {
		name, isBound := bounds[at]
		n, ok := count(text)
		switch {
		case at[0] == unclear, at[0] != "" && at[1] == unclear:
			isClear = false
		case !isBound, !quoted && string(text) == "null":
		case !ok || quoted || found[name] < 0:
			found[name] = -1
		default:
			found[name] = max(found[name], n)
		}
	}
	s.push(body)
	if isClear {
		r.bounds = found
	}
}

// bound returns the bound of the answer: the field of that name, or without a name the largest.
func (r *Request) bound(name string) (most int64, found bool) {
	if name != "" {
		most, found = r.bounds[name]
		return most, found && most >= 0
	}
	for _, n := range r.bounds {
		if n < 0 {
			return 0, false
		}
		most, found = max(most, n), true
	}
	return most, found
}

// replayed is a body of which a part has been read.
type replayed struct {
	io.Reader
	io.Closer
}

// ended is the rest of a body that was read to its end, or to an error.
type ended struct{ err error }

func (e ended) Read([]byte) (int, error) { return 0, e.err }
