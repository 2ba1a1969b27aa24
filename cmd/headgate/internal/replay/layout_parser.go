package replay

import (
	"bytes"
	"regexp"
	"strings"
)

// layoutParser reads lines of a format in the notation of nginx's log_format.
type layoutParser struct {
	collector

	steps []step
	tail  []byte // the text after the last variable; the line may go on after it
	why   string
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
	p := &layoutParser{
		collector: collector{wanted: w}, why: "not in the format " + f.name,
	}
	end := 0
	for _, at := range variables.FindAllStringIndex(f.layout, -1) {
		name := strings.Trim(f.layout[at[0]:at[1]], "${}")
		m := p.find(p.canonical([]byte(name)), atTop)
		p.steps = append(p.steps, step{[]byte(f.layout[end:at[0]]), m})
		end = at[1]
	}
	p.tail = []byte(f.layout[end:])
	return p
}

func (p *layoutParser) parse(line []byte, e *entry) string {
	p.begin(e)
	rest, ok := bytes.CutPrefix(line, p.steps[0].before)
	for i := 0; ok && i < len(p.steps); i++ {
		next := p.tail
		if i+1 < len(p.steps) {
			next = p.steps[i+1].before
		}
		var value []byte
		value, rest, ok = untilText(rest, next)
		if value = bytes.TrimSpace(value); ok && p.steps[i].meaning != nothing {
			p.set(p.steps[i].meaning, value)
		}
	}
	if !ok {
		return p.why
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

// w3cParser reads lines in the format that a #Fields line has named, with spaces or tabs.
type w3cParser struct {
	wanted
	spaces, tabs *layoutParser // nil before the first #Fields line
}

var notWords = regexp.MustCompile(`\W`)

// fields reads the names of a #Fields line.
func (p *w3cParser) fields(names string) {
	fields := strings.Fields(names)
	for i, name := range fields {
		fields[i] = "$" + notWords.ReplaceAllString(name, "_")
	}
	if len(fields) > 0 {
		p.spaces = newLayout(Format{"w3c", strings.Join(fields, " ")}, p.wanted)
		p.tabs = newLayout(Format{"w3c", strings.Join(fields, "\t")}, p.wanted)
	}
}

func (p *w3cParser) parse(line []byte, e *entry) string {
	switch {
	case p.spaces == nil:
		return "not in the format w3c: no line #Fields before it"
	case bytes.IndexByte(line, '\t') >= 0:
		return p.tabs.parse(line, e)
	}
	return p.spaces.parse(line, e)
}

// pairParser reads lines of names and values: LTSV and logfmt.
type pairParser struct {
	collector

	after, between byte // a name, pairs
}

func (p *pairParser) parse(line []byte, e *entry) string {
	p.begin(e)
	pairs := 0
	for rest := line; ; pairs++ {
		i := bytes.IndexByte(rest, p.after)
		if i < 1 {
			break
		}
		name := rest[bytes.LastIndexByte(rest[:i], p.between)+1 : i]
		if pairs == 0 && len(name) < i {
			break // a line that does not begin with a pair is of another format
		}
		var value []byte
		if rest = rest[i+1:]; p.between == ' ' && len(rest) > 0 && rest[0] == '"' {
			value, rest = quotedField(rest[1:])
		} else {
			value, rest, _ = bytes.Cut(rest, []byte{p.between})
		}
		p.set(p.find(p.canonical(name), atTop), value)
	}
	if pairs < 3 {
		return "not in the format " + map[byte]string{':': "ltsv", '=': "logfmt"}[p.after]
	}
	return p.end()
}
