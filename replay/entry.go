package replay

import (
	"strings"

	"github.com/headgate/headgate"
)

// entry is one request as a log line tells it. Its slices point into the line,
// or into the parser, and are good until the next one. What the line does not
// tell, or By did not ask for, is empty.
type entry struct {
	at      int64 // microseconds since the Unix epoch
	addr    []byte
	method  []byte
	target  []byte // of the request: path and query
	host    []byte
	headers [][]byte // in the order of wanted.headers
}

func (e *entry) clear() {
	clear(e.headers)
	*e = entry{headers: e.headers}
}

// wanted is what a parser should look for, besides the time.
type wanted struct {
	request bool     // method or target
	headers []string // canonical by headerName
}

// A parser reads the lines of one format.
type parser interface {
	// parse reads line into e, which was cleared. It returns "", or why the line
	// cannot be used. Lines that fail are still its format if known says so.
	parse(line []byte, e *entry) (why string)
	// known says whether a line seen so far proved that the log is of the format.
	known() bool
}

// Format is how the lines of a log are written.
type Format uint8

// The formats.
const (
	Guess    Format = iota // for each log, by its first line that can be read
	Combined               // the default of nginx, and of most Apache servers
	Common                 // the Common Log Format: Combined without referer and user agent
	JSON                   // one JSON object a line, under the field names in use
	W3C                    // the Extended Log File Format of IIS and CloudFront, with #Fields
)

const formatNames = "auto, combined, common, json or w3c"

var formats = [...]string{"auto", "combined", "common", "json", "w3c"}

// ParseFormat reads the name of a format: auto, combined, common, json or w3c.
func ParseFormat(name string) (Format, error) {
	for i, n := range formats {
		if strings.EqualFold(n, name) {
			return Format(i), nil
		}
	}
	return Guess, &headgate.InvalidError{Field: "format", Value: quoted(name), Want: formatNames}
}

// String is the name that [ParseFormat] reads.
func (f Format) String() string {
	if int(f) < len(formats) {
		return formats[f]
	}
	return "unknown"
}

// MarshalText gives the name of f.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

func newParser(f Format, w wanted) parser {
	switch f {
	case JSON:
		return &jsonParser{wanted: w}
	case W3C:
		return &w3cParser{wanted: w}
	default:
		return &clfParser{wanted: w, format: f}
	}
}

// guess is the only format that line can be of.
func guess(line []byte) Format {
	for _, c := range line {
		switch c {
		case ' ', '\t':
		case '{':
			return JSON
		case '#':
			return W3C
		default:
			return Combined
		}
	}
	return Combined
}
