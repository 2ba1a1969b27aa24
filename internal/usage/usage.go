// Package usage reads how many tokens a model has used from the answer of its API, and how many it
// may use from the request. It knows the published shapes of OpenAI (chat completions and
// responses), Anthropic and Gemini. It has no tokenizer and no prices.
package usage

import (
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
	input      field = iota
	cachedPart       // the part of input that came from a cache
	cachedMore       // read from a cache, and not in input
	inputMore        // written to a cache or by tools, and not in input
	output
	outputMore // of thoughts, and not in output
	fields
)

// places are where providers report, in the object that has the usage.
var places = map[path]field{
	{"usage", "prompt_tokens"}:                          input, // OpenAI, chat completions
	{"usage", "completion_tokens"}:                      output,
	{"usage", "prompt_tokens_details", "cached_tokens"}: cachedPart,
	{"usage", "input_tokens"}:                           input, // OpenAI, responses; Anthropic
	{"usage", "output_tokens"}:                          output,
	{"usage", "input_tokens_details", "cached_tokens"}:  cachedPart,
	{"usage", "cache_read_input_tokens"}:                cachedMore, // Anthropic
	{"usage", "cache_creation_input_tokens"}:            inputMore,
	{"usageMetadata", "promptTokenCount"}:               input, // Gemini
	{"usageMetadata", "candidatesTokenCount"}:           output,
	{"usageMetadata", "thoughtsTokenCount"}:             outputMore,
	{"usageMetadata", "cachedContentTokenCount"}:        cachedPart,
	{"usageMetadata", "toolUsePromptTokenCount"}:        inputMore,
}

// An event of a stream has its usage at the top, or in one of these objects.
const (
	inResponse = "response" // OpenAI, responses
	inMessage  = "message"  // Anthropic's first event, which does not know the output
)

var answerNames = namesOf(places, inResponse, inMessage)

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
	done     bool  // the answer has nothing more to say, even if it goes on
	bad      bool  // a number cannot be one of tokens
}

// tally is what was reported. The last number of a field is its number.
type tally struct {
	numbers [fields]int64
	found   [fields]bool
	final   bool // the output is known
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

func (r *reader) value(at path, text []byte) {
	early := r.events != nil && at[0] == inMessage
	if early || r.events != nil && at[0] == inResponse {
		at = path{at[1], at[2], at[3]}
	}
	f, found := places[at]
	if !found || string(text) == "null" {
		return
	}
	n, ok := count(text)
	r.document.numbers[f], r.document.found[f] = n, true
	r.document.final = r.document.final || !early
	r.bad = r.bad || !ok
}

// end counts a document that has ended. OpenAI ends a stream by [DONE], and many clients read no
// further; and none needs to read further than a document that is the answer.
func (r *reader) end() {
	s := &r.scanner
	r.done = r.done || r.events == nil || s.array && string(s.word()) == "done"
	for f, found := range r.document.found {
		if found {
			r.counted.numbers[f] = r.document.numbers[f]
		}
	}
	r.counted.final = r.counted.final || r.document.final
	r.document = tally{}
}

// counts returns what was counted so far; nothing after a number that cannot be one of tokens.
func (r *reader) counts() Counts {
	if r.bad {
		return Counts{}
	}
	n := &r.counted.numbers
	cached := min(n[cachedPart], n[input])
	return Counts{
		Input:  min(n[input]-cached+n[inputMore], MaxCount),
		Output: min(n[output]+n[outputMore], MaxCount),
		Cached: min(cached+n[cachedMore], MaxCount),
	}
}

// count returns the number of tokens that text is, and whether it is one.
func count(text []byte) (n int64, ok bool) {
	u, err := strconv.ParseUint(string(text), 10, 64)
	return int64(min(u, MaxCount)), err == nil && u <= MaxCount
}
