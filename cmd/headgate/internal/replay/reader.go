package replay

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/headgate/internal/jsonscan"
)

// reader reads the lines of a log, each in its own format: it cuts off what a shipper has written
// before a line, and tries first the format of the line before.
type reader struct {
	wanted
	format  Format // zero: any
	parsers []parser
	last    int // of parsers; len(parsers) before the first request
	w3c     *w3cParser
}

const (
	whyComment = "comment"
	whyUnknown = "not in a known format"
	whyNoFront = "no client address before the time"
)

// directive is the beginning of a line of a W3C log that is no request.
var directive = regexp.MustCompile(`^#([A-Z][A-Za-z-]*):`)

// newReader returns a reader. Lines in members of JSON are read up to a depth.
func newReader(f Format, w wanted, depth int) *reader {
	r := &reader{wanted: w, format: f}
	tried := formats
	if f != (Format{}) {
		tried = []Format{f, formats[0]}
		if f == formats[0] {
			tried = formats[:1]
		}
	}
	for _, f := range tried {
		p := newParser(f, w)
		switch p := p.(type) {
		case *w3cParser:
			r.w3c = p
		case *jsonParser:
			if depth > 0 {
				p.inside = newReader(r.format, w, depth-1)
			}
			p.only = len(r.parsers) > 0
		}
		r.parsers = append(r.parsers, p)
	}
	r.last = len(r.parsers)
	return r
}

// parse reads line into e. stamp is the time of the line, if it has none of its own. It returns the
// reason if the line cannot be used.
func (r *reader) parse(line, stamp []byte, e *entry) string {
	if len(line) > 0 && line[0] == '#' { // before the expression, for speed
		if d := directive.FindSubmatch(line); d != nil {
			if string(d[1]) == "Fields" && r.w3c != nil {
				r.w3c.fields(string(line[len(d[0]):]))
			}
			return whyComment
		}
	}
	rest, at := unship(line)
	if at != nil {
		stamp = at
	}
	if r.last < len(r.parsers) {
		if why := r.try(r.last, rest, stamp, e); why == "" {
			return ""
		}
	}
	return r.detect(line, rest, stamp, e)
}

// detect tries all formats. A line in which one finds a client is in that format.
func (r *reader) detect(line, rest, stamp []byte, e *entry) string {
	why, without := whyUnknown, -1
	if r.format != (Format{}) {
		why = ""
	}
	object, _ := jsonObject(rest)
	if len(rest) == 0 {
		return whyUnknown
	}
	for i := range r.parsers {
		_, isJSON := r.parsers[i].(*jsonParser)
		skip := isJSON && object == nil || !isJSON && rest[0] == '{'
		if skip && len(r.parsers) > 2 {
			continue
		}
		failed := r.try(i, rest, stamp, e)
		if failed != "" && r.format.layout != "" && len(rest) < len(line) {
			failed = r.try(i, line, stamp, e)
		}
		switch {
		case failed == "" && len(e.addr) > 0:
			r.last = i
			return ""
		case failed == "" && without < 0:
			without = i
		case why == "" || isJSON && object != nil || failed == whyNoFront:
			why = failed
		}
	}
	if without >= 0 {
		r.last = without
		return r.try(without, rest, stamp, e)
	}
	return why
}

// try reads a line in one format.
func (r *reader) try(i int, rest, stamp []byte, e *entry) string {
	var before []byte
	if _, ok := r.parsers[i].(*jsonParser); ok && len(rest) > 0 && rest[0] != '{' {
		if object, text := jsonObject(rest); object != nil {
			rest, before = object, text
		}
	}
	if len(stamp) == 0 {
		stamp = before
	}
	e.clear(stamp)
	why := r.parsers[i].parse(rest, e)
	if why == "" && len(before) > 0 && e.method == nil && e.target == nil {
		return "no request after the text" // that an application has logged
	}
	return why
}

// jsonObject returns the JSON object that a line ends with, and the time before it.
func jsonObject(line []byte) (object, before []byte) {
	line = bytes.TrimSpace(line)
	end := bytes.TrimSuffix(line, []byte{','})
	if len(end) == 0 || line[0] != '{' && end[len(end)-1] != '}' {
		return nil, nil
	}
	i := bytes.Index(line, []byte(`{"`))
	if i < 0 || line[0] == '{' {
		i = 0
	}
	if line[i] != '{' {
		return nil, nil
	}
	before, _, tabbed := bytes.Cut(line[:i], []byte{'\t'})
	if !tabbed {
		before, _ = word(before)
	}
	return line[i:], before
}

// used returns the format of the last request.
func (r *reader) used() Format {
	if r.format == (Format{}) && r.last < len(formats) {
		return formats[r.last]
	}
	return r.format
}

// help says what a line that cannot be read has, and which option may help.
func help(line []byte) string {
	line, _ = unship(bytes.TrimSpace(line))
	object, _ := jsonObject(line)
	names := membersOf(object)
	begin := line[:min(len(line), 50)]
	switch {
	case len(line) == 0:
		return ""
	case !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0:
		return "is not text"
	case len(names) > 0:
		return "has the members " + strings.Join(names, ", ") +
			"; name those with the client and the time by --field client=NAME,time=NAME"
	case line[0] == '{' || line[0] == '[' && (len(line) == 1 || line[1] == '{'):
		return "is not one JSON object; to make such lines, type jq -c . FILE, " +
			"or jq -c .[] FILE for an array"
	}
	return "begins " + quoted(string(begin)) +
		"; describe the lines by --format '$remote_addr [$time_local] ...', see docs/replay.md"
}

// membersOf returns the names of the members of an object, or nothing if it is not whole.
func membersOf(object []byte) (names []string) {
	s := jsonscan.Of(object)
	for s.Enter('{') || s.Enter(',') {
		name, ok := s.Name()
		if _, whole := s.Value(); !ok || !whole {
			return nil
		}
		if len(names) < 12 {
			names = append(names, strings.Trim(string(name), `"`))
		}
	}
	return names
}
