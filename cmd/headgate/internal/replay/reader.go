package replay

import (
	"bytes"
	"cmp"
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
	tried   []Format
	parsers []parser // of tried; JSON first, or for lines in its members
	last    int      // of parsers; len(parsers) before the first request
	inside  *reader  // of lines in members of JSON; nil in such a line of such a line
}

const (
	whyComment  = "comment"
	whyNoFront  = "no single client address before the time"
	whyNoColumn = "no column has a name of --field"

	shortestLine = 24 // a shorter text in a member is no line of a log
)

// directive is the beginning of a line of a W3C log that is no request.
var directive = regexp.MustCompile(`^#([A-Z][A-Za-z-]*):`)

// newReader returns a reader. Lines in members of JSON are read up to a depth.
func newReader(f Format, w wanted, depth int) *reader {
	r := &reader{wanted: w, format: f, tried: formats}
	if f != (Format{}) {
		r.tried = []Format{f, formats[0]}
	}
	for _, f := range r.tried {
		r.parsers = append(r.parsers, newParser(f, w))
	}
	if r.last = len(r.parsers); depth > 0 {
		r.inside = newReader(f, w, depth-1)
	}
	return r
}

// parse reads line into e. stamp is the time of the line, if it has none of its own. It returns the
// reason if the line cannot be used.
func (r *reader) parse(line, stamp []byte, e *entry) string {
	rest := line
	if !isBare(line) {
		if d := directive.FindSubmatch(line); d != nil {
			for i, p := range r.parsers {
				l, ok := p.(*layoutParser)
				if ok && r.tried[i].name == "w3c" && string(d[1]) == "Fields" {
					l.columns(string(line[len(d[0]):]))
				}
			}
			return whyComment
		}
		rest, stamp = unship(line, stamp)
	}
	if r.last < len(r.parsers) && r.try(r.last, rest, stamp, e) == "" {
		return ""
	}
	return r.detect(line, rest, stamp, e)
}

// detect tries all formats. A line in which one finds a client is in that format.
func (r *reader) detect(line, rest, stamp []byte, e *entry) string {
	why, without, n := whyUnknown, -1, len(r.parsers)
	if r.format == (Format{}) && len(rest) > 0 && rest[0] == '{' {
		n = 1 // JSON
	}
	for i := range n {
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
		case failed != "" && (why == whyUnknown || failed == whyNoFront):
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
	if p, ok := r.parsers[i].(*jsonParser); ok {
		return r.tryJSON(p, i > 0, rest, stamp, e)
	}
	e.clear(stamp)
	return r.parsers[i].parse(rest, e)
}

// tryJSON reads a line that ends with an object, or only a line of another format in a member.
func (r *reader) tryJSON(p *jsonParser, only bool, rest, stamp []byte, e *entry) string {
	object, before := jsonObject(rest)
	if len(stamp) == 0 {
		stamp = before
	}
	e.clear(stamp)
	why := p.parse(object, e)
	isRequest := why == "" && len(e.addr) > 0 && (e.method != nil || e.target != nil)
	if r.inside != nil && len(p.text) >= shortestLine && p.text[0] == '"' && (!isRequest || only) {
		text, _ := jsonscan.Unquote(p.text)
		within := r.inside.parse(bytes.TrimRight(text, "\r\n"), p.timeText, e)
		if within == "" && len(e.addr) > 0 {
			return ""
		}
		e.clear(stamp)
		why = p.parse(object, e)
	}
	switch {
	case only:
		return whyUnknown
	case why == "" && len(before) > 0 && e.method == nil && e.target == nil:
		return "no request after the text" // that an application has logged
	}
	return why
}

// jsonObject returns the JSON object that a line ends with, and the time before it.
func jsonObject(line []byte) (object, before []byte) {
	for len(line) > 0 && line[0] <= ' ' {
		line = line[1:]
	}
	if len(line) > 0 && line[0] == '{' {
		return line, nil
	}
	end := bytes.TrimRight(line, ", ")
	i := bytes.Index(line, []byte(`{"`))
	if i < 0 || end[len(end)-1] != '}' {
		return nil, nil
	}
	before, _, tabbed := bytes.Cut(line[:i], []byte{'\t'})
	if !tabbed {
		before, _ = word(before)
	}
	return line[i:], before
}

// help says what a line that cannot be read has, and which option may help.
func help(why string, line []byte) string {
	line, _ = unship(bytes.TrimSpace(line), nil)
	object, _ := jsonObject(line)
	var names []string
	for name := range membersOf(object) {
		if len(names) < 12 {
			names = append(names, name[:min(len(name), 40)])
		}
	}
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
	suggested := ""
	if why == whyUnknown || why == whyNoFront { // and not of a line without its client
		suggested = suggestion(line)
	}
	example := cmp.Or(suggested, "$remote_addr [$time_local] ...")
	switch header, isHeader := strings.CutPrefix(why, "no header:"); {
	case why == whyNoFront && suggested == "":
		example = `$remote_addr $_ - - [$time_local] "$request"`
	case why == whyNoColumn:
		header = "X-Forwarded-For"
		fallthrough
	case isHeader:
		example = `$remote_addr - - [$time_local] "$request" $_ $_ "$_" "$_" "$http_` +
			strings.ToLower(strings.ReplaceAll(header, "-", "_")) + `"`
	}
	return "begins " + quoted(string(begin)) +
		"; describe the lines by --format '" + strings.ReplaceAll(example, "'", `'\''`) +
		"', see docs/replay.md"
}
