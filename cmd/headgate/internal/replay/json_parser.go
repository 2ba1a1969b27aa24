package replay

import "github.com/headgate/headgate/cmd/headgate/internal/jsonscan"

// jsonParser reads a line that is one JSON object. It finds the request under the names that
// servers and loggers use, see [members].
type jsonParser struct {
	collector

	scan    jsonscan.Scanner
	members int // of this line, so far
	last    [64]remembered
}

func (p *jsonParser) parse(line []byte, e *entry) string {
	p.scan, p.members = jsonscan.Of(line), 0
	p.begin(e)
	if !p.scan.Enter('{') {
		return whyUnknown
	}
	if !p.object(atTop, 0) || !p.scan.Enter(',') && !p.scan.AtEnd() { // a comma in an array
		return "not a whole JSON object"
	}
	for _, n := range p.names {
		if v := memberOf(line, n.path); v != nil {
			first := jsonscan.Of(v[1:])
			switch {
			case v[0] != '[' || first.Peek() != '"':
			case n.fields[0] == fieldAddr: // a list in several texts
				p.set(meaning{field: fieldAddr, header: -1, back: n.back}, v[1:len(v)-1])
				continue
			default:
				v, _ = first.Value()
			}
			p.value(meaning{field: n.fields[0], header: -1, back: n.back}, v)
		}
	}
	return p.end()
}

// object reads the members of an object, after its brace. It returns false if the line is not
// JSON.
func (p *jsonParser) object(in place, depth int) bool {
	for {
		m, ok := p.next(in)
		if !ok {
			return p.scan.Enter('}') // no member, or a comma after the last
		}
		if !p.member(m, depth) {
			return false
		}
		if !p.scan.Enter(',') {
			return p.scan.Enter('}')
		}
	}
}

// remembered is the meaning of a member of an earlier line.
type remembered struct {
	name []byte // in its quotes, and a colon
	in   place
	meaning
}

// next reads the name of a member and returns its meaning. The lines of a log mostly have the
// same members in the same order, so the name at the same position in an earlier line is tried
// first.
func (p *jsonParser) next(in place) (m meaning, ok bool) {
	s, r := &p.scan, &p.last[p.members%len(p.last)]
	p.members++
	if r.in == in && len(r.name) > 0 && s.EnterText(r.name) {
		return r.meaning, true
	}
	name, ok := s.Name()
	if !ok {
		return nothing, false
	}
	m = p.find(p.canonical(name), in)
	if len(name) < 100 {
		*r = remembered{append(append(r.name[:0], name...), ':'), in, m}
	}
	return m, true
}

// member reads the value of a member.
func (p *jsonParser) member(m meaning, depth int) bool {
	s := &p.scan
	if m == nothing {
		_, ok := s.Value()
		return ok
	}
	if to, ok := p.descend(m.field); ok && depth < 4 && s.Enter('{') {
		return p.object(to, depth+1)
	}
	v, ok := s.Value()
	return ok && p.value(m, v)
}

// value stores a value as it is written. Of an array, it takes the first text for a header.
func (p *jsonParser) value(m meaning, v []byte) (ok bool) {
	switch {
	case v[0] == '[' && m.header >= 0:
		first := jsonscan.Of(v[1:])
		if first.Peek() == '"' {
			v, ok = first.Value()
			return ok && p.value(meaning{header: m.header}, v)
		}
	case v[0] == '[', v[0] == '{', string(v) == "null":
	case m.field == fieldText, m.field == fieldMessage:
		p.text = v
	case v[0] == '"':
		if v, ok = jsonscan.Unquote(v); ok {
			p.set(m, v)
		}
		return ok
	default:
		p.set(m, v)
	}
	return true
}

// descend returns the place of the members of an object that is the value of f.
func (p *jsonParser) descend(f field) (to place, ok bool) {
	switch f {
	case fieldRequest, fieldMessage:
		return atTop, true
	case fieldClient:
		return inClient, true
	case fieldResponse:
		return inResponse, true
	case fieldURL:
		return inURL, true
	case fieldHeaders:
		return inHeaders, len(p.headers) > 0
	case fieldAgent:
		return inAgent, len(p.headers) > 0
	}
	return atTop, false
}
