package replay

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// layoutParser reads lines of a format in the notation of nginx's log_format. In a line with tabs,
// spaces of a format of a user are tabs.
type layoutParser struct {
	collector

	spaces, tabs layout
	known        bool // one of the table, of which the status must be one
}

// layout is variables, and the text after the last of them; the line may go on after that.
type layout struct {
	steps []step
	tail  []byte
	named int // columns that have a name of --field
}

// step is a variable, and the text before it.
type step struct {
	before []byte
	meaning
}

var variables = regexp.MustCompile(`\$(\w+|\{\w+\})`)

// isLayout reports whether text has variables, with something between them that ends each.
func isLayout(text string) bool {
	found := variables.FindAllStringIndex(text, -1)
	for i := 1; i < len(found); i++ {
		if found[i-1][1] == found[i][0] {
			return false
		}
	}
	return len(found) > 0
}

func newLayout(f Format, w wanted) *layoutParser {
	w.status = true
	p := &layoutParser{collector: collector{wanted: w}, known: slices.Contains(formats, f)}
	p.spaces = p.layout(f.layout)
	if p.tabs = p.spaces; !p.known {
		text := strings.ReplaceAll(f.layout, `\t`, "\t") // as nginx writes one
		p.tabs = p.layout(strings.ReplaceAll(text, " ", "\t"))
	}
	return p
}

func (p *layoutParser) layout(text string) (l layout) {
	end := 0
	for _, at := range variables.FindAllStringIndex(text, -1) {
		name := strings.Trim(text[at[0]:at[1]], "${}")
		column := string(p.canonical([]byte(name)))
		m := p.find([]byte(column), atTop)
		for _, n := range p.names {
			if string(p.canonical(notWords.ReplaceAll([]byte(n.path), nil))) == column {
				m.field, m.rank, m.back, l.named = n.fields[0], 0, n.back, l.named+1
			}
		}
		l.steps = append(l.steps, step{[]byte(text[end:at[0]]), m})
		end = at[1]
	}
	l.tail = []byte(text[end:])
	return l
}

func (p *layoutParser) parse(line []byte, e *entry) string {
	p.begin(e)
	l := p.spaces
	if bytes.IndexByte(line, '\t') >= 0 {
		l = p.tabs
	}
	if len(l.steps) == 0 {
		return whyUnknown // of a W3C log, before its line #Fields
	}
	rest, ok := bytes.CutPrefix(line, l.steps[0].before)
	for i := 0; ok && i < len(l.steps); i++ {
		next := l.tail
		if i+1 < len(l.steps) {
			next = l.steps[i+1].before
		}
		m, cut := l.steps[i].meaning, untilText
		if bytes.HasPrefix(next, colon) && slices.Contains(namedFields["client"], m.field) {
			cut = addressUntil
		}
		var value []byte
		value, rest, ok = cut(rest, next)
		value = bytes.TrimSpace(value)
		if p.known && m.field == fieldStatus {
			last := value[bytes.LastIndexByte(value, ' ')+1:] // after those of upstreams
			ok = ok && (isStatus(last) || len(last) > 0 && last[0] == '-')
		}
		if ok && m != nothing {
			p.set(m, value)
		}
	}
	switch {
	case !ok:
		return whyUnknown
	case l.named < len(p.names) && (!p.known || p.names.hold(fieldAddr)):
		return whyNoColumn
	}
	return p.end()
}

// untilText cuts b at the text that ends a value, and after it. In a value that is quoted, or
// before an escaped quote, that text does not count, nor a space in a list.
func untilText(b, text []byte) (value, rest []byte, ok bool) {
	if len(text) == 0 {
		return b, nil, true
	}
	if text[0] == ' ' {
		b = bytes.TrimLeft(b, " ") // columns may be padded
		if len(b) > 0 && b[0] == '"' {
			value, rest = quotedField(b[1:])
			rest, ok = bytes.CutPrefix(rest, text)
			return value, rest, ok
		}
	}
	for i := 0; ; i++ {
		j := bytes.Index(b[i:], text)
		if j < 0 {
			return nil, nil, false
		}
		i += j
		if text[0] == '"' && escaped(b, i) || text[0] == ' ' && i > 0 && b[i-1] == ',' {
			continue
		}
		return b[:i], b[i+len(text):], true
	}
}

var colon = []byte{':'}

// addressUntil is untilText for a client before a colon: one of IPv6 has colons, too.
func addressUntil(b, text []byte) (value, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " ")
	first, _ := word(b[:min(len(b), longestAddress)])
	for i := bytes.LastIndexByte(first, ':'); i > 0; i = bytes.LastIndexByte(first[:i], ':') {
		if bytes.HasPrefix(b[i:], text) && isAddress(b[:i]) {
			return b[:i], b[i+len(text):], true
		}
	}
	return untilText(b, text)
}

var notWords = regexp.MustCompile(`\W`)

// columns takes the names of a #Fields line of W3C for the layout.
func (p *layoutParser) columns(names string) {
	fields := strings.Fields(names)
	for i, name := range fields {
		fields[i] = "$" + notWords.ReplaceAllString(name, "_")
	}
	*p = *newLayout(Format{"", strings.Join(fields, " ")}, p.wanted)
}
