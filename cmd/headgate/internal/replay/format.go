package replay

import (
	"bytes"
	"strings"

	"github.com/headgate/headgate"
)

// entry is the request in a log line. Its slices point into the line or the parser, and are valid
// until the next line. Fields that the line does not hold, or that By does not need, are empty.
type entry struct {
	at      int64 // microseconds since the Unix epoch
	addr    []byte
	method  []byte
	target  []byte // of the request: path and query
	status  []byte // of the response
	host    []byte
	headers [][]byte // in the order of wanted.headers
}

func (e *entry) clear() {
	clear(e.headers)
	*e = entry{headers: e.headers}
}

// wanted are the fields that a parser must find, in addition to the time.
type wanted struct {
	request bool // method or target
	status  bool
	headers []string // canonical by headerName
}

// A parser reads the lines of one format.
type parser interface {
	// parse reads line into e, which is empty. It returns "", or the reason why the line
	// cannot be used. Such a line may still be in the format: see known.
	parse(line []byte, e *entry) (why string)
	// known reports whether a line that was read proves that the log is in the format.
	known() bool
}

// Format is the format of the lines of a log.
type Format uint8

// The formats.
const (
	Guess    Format = iota // detected for each log, by its first line that can be read
	Combined               // the default of nginx, and of most Apache servers
	Common                 // the Common Log Format: Combined without referer and user agent
	JSON                   // one JSON object a line, under the field names in use
)

const formatNames = "auto, combined, common or json"

var formats = [...]string{"auto", "combined", "common", "json"}

// ParseFormat reads the name of a format: auto, combined, common or json.
func ParseFormat(name string) (Format, error) {
	for i, n := range formats {
		if strings.EqualFold(n, name) {
			return Format(i), nil
		}
	}
	return Guess, &headgate.InvalidError{Field: "format", Value: quoted(name), Want: formatNames}
}

// String returns the name that [ParseFormat] reads.
func (f Format) String() string {
	if int(f) < len(formats) {
		return formats[f]
	}
	return "unknown"
}

// MarshalText returns the name of f.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

func newParser(f Format, w wanted) parser {
	if f == JSON {
		return &jsonParser{wanted: w}
	}
	return &clfParser{wanted: w, format: f}
}

// guess returns the only format that line can be in.
func guess(line []byte) Format {
	if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte{'{'}) {
		return JSON
	}
	return Combined
}
