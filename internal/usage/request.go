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

// Request is what a request says about how many tokens it may use. No more is known of a body that
// a server may read in another way: one that is not JSON in UTF-8 as it is, is longer than the
// first MiB, or has a name that is not clear or is there twice.
type Request struct {
	Bytes      int64 // of the body
	Background bool  // another request may get the answer

	body   []byte           // that is believed
	bounds map[string]int64 // of the answer; -1: a server may read another
}

// Details are what few rules need of a request: reading them takes longer.
type Details struct {
	Model         string
	Stream        bool // the answer is a stream
	StreamOptions bool // there are some, or null
}

// Details returns what r says besides.
func (r *Request) Details() (d Details) {
	var members struct {
		Model         json.RawMessage `json:"model"`
		Stream        json.RawMessage `json:"stream"`
		StreamOptions json.RawMessage `json:"stream_options"`
	}
	_ = json.Unmarshal(r.body, &members)        // which may be empty
	_ = json.Unmarshal(members.Model, &d.Model) // which may be none
	d.Stream, d.StreamOptions = string(members.Stream) == "true", members.StreamOptions != nil
	return d
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
	bounds       = pathsTo(boundPaths)
	requestNames = namesOf(bounds, "background", "model", "stream", "stream_options")
)

// Bounds are the names of the fields that can bound an answer.
func Bounds() []string { return slices.Sorted(maps.Keys(boundPaths)) }

// ErrStop is returned by a body that is not to be read further before it is passed on.
var ErrStop = errors.New("usage: the rest of the body is not read ahead")

// Peek reads what the request of body says, from the first MiB at most. Length is that of the body,
// or -1. It reads less if body returns ErrStop, and then finds no bound. The body that Peek returns
// is the whole one, with the error at which reading has stopped. Peek returns that error, too.
func Peek(h http.Header, body io.ReadCloser, length int64) (Request, io.ReadCloser, error) {
	start, err := io.ReadAll(io.LimitReader(body, maxPeek))
	r, rest := Request{Bytes: max(length, int64(len(start)))}, io.Reader(body)
	whole := err != nil || len(start) < maxPeek || int64(len(start)) == length
	whole = whole && !errors.Is(err, ErrStop)
	if whole {
		rest = ended{cmp.Or(err, io.EOF)} // a server may have closed the body meanwhile
	}
	r.read(h, start, whole)
	return r, replayed{io.MultiReader(bytes.NewReader(start), rest), body}, err
}

// read reads what a body says, or its beginning. If a name in it is not clear, it may be that of a
// bound. Of a name that is there twice, each server reads another value.
func (r *Request) read(h http.Header, body []byte, whole bool) {
	found, seen, isClear := make(map[string]int64), make(map[path]bool), true
	s := scanner{names: requestNames}
	s.naming = func(at path) {
		if at[0] != "" && at[2] == "" { // a bound has at most two
			isClear = isClear && !seen[at] && at[0] != unclear && at[1] != unclear
			seen[at] = true
		}
	}
	s.value = func(at path, text []byte, quoted bool) {
		name, isBound := bounds[at]
		n, ok := count(text)
		isNull := !quoted && string(text) == "null"
		switch {
		case at == path{"background"}, at == path{unclear}:
			r.Background = r.Background || string(text) == "true"
		case !isBound, isNull:
		case !ok || quoted || n == 0 || found[name] < 0: // to some servers, 0 is no bound
			found[name] = -1
		default:
			found[name] = max(found[name], n)
		}
	}
	s.push(body)
	if whole && isClear && isPlain(h, body) && json.Valid(body) {
		r.body, r.bounds = body, found
	}
}

// isPlain reports whether h and body are those of an object of JSON in UTF-8, without compression.
func isPlain(h http.Header, body []byte) bool {
	media, parameters, err := mime.ParseMediaType(cmp.Or(h.Get("Content-Type"), "application/json"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) &&
		strings.EqualFold(cmp.Or(parameters["charset"], "utf-8"), "utf-8") &&
		len(h["Content-Type"]) < 2 && len(h["Content-Encoding"]) == 0 &&
		bytes.HasPrefix(body, []byte("{"))
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
