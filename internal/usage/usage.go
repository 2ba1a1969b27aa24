// Package usage reads how many tokens a model has used from the answer of its API, and how many it
// may use from the request. It knows the published shapes of the providers in its tables. It has no
// tokenizer and no prices.
package usage

import (
	"slices"
	"strconv"
	"strings"
)

// Counts are the tokens of an answer. Each token is in one of the fields.
type Counts struct {
	Input  int64 // that were read, without those of a cache
	Output int64 // that were written, with those of thoughts
	Cached int64 // that were read from a cache
}

// MaxCount is the largest number of tokens. All languages count it exactly.
const MaxCount = 1<<53 - 1

// field is a number that providers report.
type field uint8

const (
	whole      field = iota // input, with what came from a cache
	fresh                   // input; with cachedPart it is whole, else without what is cached
	cachedPart              // the part of input that came from a cache
	cacheRead               // the same part beside whole or cachedPart, else not in input
	cacheWrite              // in whole, and not in fresh
	inputMore               // of tools, and not in input
	output
	outputMore // of thoughts, and not in output
	total      // input and output, for answers that report no input
	fields
)

// places are where OpenAI, Anthropic, Gemini, Bedrock, Cohere, Ollama, and others with their APIs,
// report a number. If a document has several of them, the largest counts, because some servers
// report 0 under the name of another provider.
var places = pathsTo(map[field]string{
	whole: "usage.prompt_tokens usage.tokens.input_tokens delta.usage.tokens.input_tokens " +
		"meta.tokens.input_tokens usageMetadata.promptTokenCount prompt_eval_count",
	fresh: "usage.input_tokens usage.inputTokens",
	cachedPart: "usage.prompt_tokens_details.cached_tokens usage.cached_tokens " +
		"usage.input_tokens_details.cached_tokens usage.prompt_cache_hit_tokens " +
		"usageMetadata.cachedContentTokenCount",
	cacheRead:  "usage.cache_read_input_tokens usage.cacheReadInputTokens",
	cacheWrite: "usage.cache_creation_input_tokens usage.cacheWriteInputTokens",
	inputMore:  "usageMetadata.toolUsePromptTokenCount",
	output: "usage.completion_tokens usage.output_tokens usage.outputTokens " +
		"usage.tokens.output_tokens delta.usage.tokens.output_tokens " +
		"meta.tokens.output_tokens usageMetadata.candidatesTokenCount eval_count",
	outputMore: "usageMetadata.thoughtsTokenCount",
	total:      "usage.total_tokens",
})

// pathsTo returns the paths of each value, which are written with dots and separated by spaces.
func pathsTo[V comparable](texts map[V]string) map[path]V {
	paths := make(map[path]V)
	for v, text := range texts {
		for dotted := range strings.FieldsSeq(text) {
			var at path
			copy(at[:], strings.Split(dotted, "."))
			paths[at] = v
		}
	}
	return paths
}

// wrappers are the names around a place in an event, and how many of a path they are. They are of
// OpenAI's responses, Anthropic's first event, which does not know the output, Groq, and Moonshot:
// an element of choices has an empty name.
var wrappers = map[string]int{"response": 1, inMessage: 1, "x_groq": 1, "choices": 2}

const (
	inMessage  = "message"
	iterations = "iterations" // of Anthropic: the sum of them, with those of compaction
)

// lastEvents are the types of events of OpenAI, Anthropic and Cohere that end a stream.
var lastEvents = []string{
	"response.completed", "response.incomplete", "response.failed", "message_stop", "message-end",
}

// finishReason is in Gemini's last event.
var finishReason = path{"candidates", "", "finishReason"}

var answerNames = namesOf(places, "response", inMessage, "x_groq", "choices", iterations, "type",
	"error", "candidates", "finishReason", "done")

// namesOf returns the names in the places, and more, by their lower case.
func namesOf[V any](places map[path]V, more ...string) map[string]string {
	names := make(map[string]string)
	for at := range places {
		more = append(more, at[:]...)
	}
	for _, name := range more {
		names[strings.ToLower(name)] = name
	}
	return names
}

// reader reads the usage of an answer that is pushed into it.
type reader struct {
	scanner scanner
	events  *events // nil: the answer is not a stream

	document tally // that is being read
	counted  tally // of documents that have ended
	errors   int   // documents that were an error
	others   int
	single   bool // the answer is one document, and more is no part of it
	done     bool // the answer has nothing more to say, even if it goes on
	bad      bool // a number cannot be one of tokens
}

// tally is what was reported. The last number of a field that is not 0 is its number, because some
// servers end a stream with 0 for what its first event has said.
type tally struct {
	numbers  [fields]int64
	iterated [fields]int64 // sums
	final    bool          // the output is known
	later    bool          // the usage is not known yet
	isError  bool
	last     bool // the document ends a stream, or lines of JSON
}

func newReader(stream bool) *reader {
	r := &reader{}
	r.scanner = scanner{names: answerNames, value: r.value, end: r.end}
	if stream {
		r.events = &events{}
	}
	return r
}

// begin begins a document, and forgets one that has not ended.
func (r *reader) begin() {
	s := &r.scanner
	*s = scanner{names: s.names, value: s.value, end: s.end}
	r.document = tally{}
}

func (r *reader) push(p []byte) {
	if r.events == nil {
		r.scanner.push(p)
		return
	}
	for _, b := range p {
		data, end := r.events.next(b)
		if end {
			r.begin()
		}
		if data {
			r.scanner.next(b)
		}
	}
}

func (r *reader) value(at path, text []byte, quoted bool) {
	d := &r.document
	isNull := !quoted && string(text) == "null"
	switch {
	case at[0] == "error": // some servers always have the name
		d.isError = d.isError || quoted && r.scanner.length > 0
	case at == path{"type"}:
		d.isError = d.isError || string(text) == "error"
		d.last = d.last || slices.Contains(lastEvents, string(text))
	case at == finishReason:
		d.last = d.last || quoted
	case at == path{"done"}: // Ollama's last line
		d.last = d.last || r.events == nil && string(text) == "true"
	case isNull:
		d.later = d.later || at[0] == "usage"
	default:
		r.number(at, text, quoted)
	}
}

// number reads a number, if it is at a place.
func (r *reader) number(at path, text []byte, quoted bool) {
	d, in, early := &r.document, at, false
	if r.events != nil {
		in, early = path{}, at[0] == inMessage
		copy(in[:], at[wrappers[at[0]]:])
	}
	isIteration := in[1] == iterations
	if isIteration {
		in = path{in[0], in[3]}
	}
	f, found := places[in]
	if !found {
		return
	}
	n, ok := count(text)
	r.bad = r.bad || !ok || quoted
	d.final = d.final || !early
	if isIteration {
		d.iterated[f] = min(d.iterated[f]+n, MaxCount)
	} else {
		d.numbers[f] = max(d.numbers[f], n)
	}
}

// end counts a document that has ended. OpenAI ends a stream by [DONE], and others by an event, and
// many clients read no further; and none needs to read further than the only document.
func (r *reader) end() {
	s, d := &r.scanner, &r.document
	isDone := r.events != nil && s.array && string(s.word()) == "DONE"
	r.done = r.done || r.single || isDone || d.last
	switch {
	case d.isError:
		r.errors++
	case !isDone:
		r.others++
	}
	for f := range fields {
		if n := max(d.numbers[f], d.iterated[f]); n > 0 {
			r.counted.numbers[f] = n
		}
	}
	r.counted.final = r.counted.final || d.final
	r.counted.later = d.later
	*d = tally{}
}

// counts returns what was counted so far; nothing after a number that cannot be one of tokens.
func (r *reader) counts() Counts {
	if r.bad {
		return Counts{}
	}
	n := &r.counted.numbers
	read := max(n[whole], n[fresh])
	if read == 0 {
		read = max(n[total]-n[output], 0)
	}
	more, cached := n[cacheWrite], n[cacheRead]
	if n[whole] > 0 || n[cachedPart] > 0 {
		cached = min(max(n[cachedPart], cached), read)
		more = -cached
	}
	return Counts{
		Input:  min(read+more+n[inputMore], MaxCount),
		Output: min(n[output]+n[outputMore], MaxCount),
		Cached: min(cached, MaxCount),
	}
}

// count returns the number of tokens that text is, and whether it is one. Some servers write whole
// numbers as 700.0.
func count(text []byte) (n int64, ok bool) {
	whole, fraction, _ := strings.Cut(string(text), ".")
	u, err := strconv.ParseUint(whole, 10, 64)
	return int64(min(u, MaxCount)), err == nil && u <= MaxCount && strings.Trim(fraction, "0") == ""
}
