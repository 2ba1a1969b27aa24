package replay

import (
	"bytes"

	"github.com/headgate/headgate/cmd/headgate/internal/jsonscan"
)

// jsonParser reads a line that is one JSON object. It finds the request under the names that
// servers and loggers use, see [members].
type jsonParser struct {
	wanted
	times timestamps
	seen  bool

	scan jsonscan.Scanner
	e    *entry
	rank [fieldAgent + 1]uint8 // of the member that set each field, plus 1
	name [64]byte

	members int // of this line, so far
	last    [64]remembered
}

func (p *jsonParser) known() bool { return p.seen }

func (p *jsonParser) parse(line []byte, e *entry) string {
	p.scan = jsonscan.Of(line)
	p.e, p.rank, p.members = e, [len(p.rank)]uint8{}, 0
	if !p.scan.Enter('{') {
		return "not a JSON object"
	}
	if !p.object(atTop, 0) || !p.scan.AtEnd() {
		return "not a whole JSON object"
	}
	if e.at == 0 {
		return "no time that can be read"
	}
	p.seen = true
	if len(e.addr) == 0 && isAddress(e.host) {
		e.addr = e.host // some configurations name Apache's %h so
	}
	return ""
}

// object reads the members of an object, after its brace. It returns false if the line is not
// JSON.
func (p *jsonParser) object(in place, depth int) bool {
	s := &p.scan
	for first := true; ; first = false {
		if s.Enter('}') {
			return true
		}
		if !first && !s.Enter(',') {
			return false
		}
		m, ok := p.next(in)
		if !ok || !p.member(m, depth) {
			return false
		}
	}
}

// canonical returns a name in lower case, without dashes, underscores, dots, spaces and @, or
// nil if it is too long to be a known one.
func (p *jsonParser) canonical(raw []byte) []byte {
	n := 0
	for _, c := range raw {
		switch {
		case c == '"' || c == '-' || c == '_' || c == '.' || c == '@' || c == ' ':
			continue
		case n == len(p.name):
			return nil
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		p.name[n] = c
		n++
	}
	return p.name[:n]
}

// meaning is what the member with a certain name holds.
type meaning struct {
	field  field
	rank   uint8
	header int // its index in wanted.headers, or -1
}

var nothing = meaning{noField, 0, -1}

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

func (p *jsonParser) find(name []byte, in place) meaning {
	m, known := meanings[in][string(name)]
	if !known || !p.status && (m.field == fieldStatus || m.field == fieldResponse) {
		m = nothing
	}
	if len(p.headers) > 0 {
		m.header = p.header(name, in)
	}
	return m
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
	case fieldRequest:
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

// header returns the index of the wanted header that a member holds, or -1.
func (p *jsonParser) header(name []byte, in place) int {
	switch in {
	case inAgent:
		if string(name) != "original" {
			return -1
		}
		name = []byte("useragent")
	case atTop:
		prefixes := []string{"http", "requestheader", "request", "header", "clientrequest"}
		for _, prefix := range prefixes {
			if rest, ok := bytes.CutPrefix(name, []byte(prefix)); ok && p.headerIndex(rest) >= 0 {
				return p.headerIndex(rest)
			}
		}
	case inHeaders:
	default:
		return -1
	}
	return p.headerIndex(name)
}

func (p *jsonParser) headerIndex(name []byte) int {
	if string(name) == "referrer" {
		name = name[:copy(name, "referer")]
	}
	for i, h := range p.headers {
		if h == string(name) {
			return i
		}
	}
	return -1
}

// set stores the value of a member by its meaning.
func (p *jsonParser) set(m meaning, v []byte) {
	if len(present(v)) == 0 {
		return
	}
	if m.header >= 0 {
		p.e.headers[m.header] = v
	}
	switch m.field {
	case fieldTime:
		if at, ok := p.times.read(bytes.Trim(v, "[]")); ok && p.better(fieldTime, m.rank) {
			p.e.at = at
		}
	case fieldAddr, fieldClient:
		p.keep(&p.e.addr, fieldAddr, m.rank, v)
	case fieldMethod:
		p.keep(&p.e.method, fieldMethod, m.rank, v)
	case fieldTarget, fieldURL:
		p.keep(&p.e.target, fieldTarget, m.rank, v)
	case fieldLine, fieldRequest:
		method, target := requestLine(v)
		p.keep(&p.e.method, fieldMethod, m.rank, method)
		p.keep(&p.e.target, fieldTarget, m.rank, target)
	case fieldHost:
		p.keep(&p.e.host, fieldHost, m.rank, v)
	case fieldStatus:
		if isStatus(v) {
			p.keep(&p.e.status, fieldStatus, m.rank, v)
		}
	}
}

// keep sets a part of the entry, unless v is nil or a better member has set it.
func (p *jsonParser) keep(to *[]byte, f field, rank uint8, v []byte) {
	if v != nil && p.better(f, rank) {
		*to = v
	}
}

// better reports whether no member of the same or a lower rank has set f before, and records
// the rank.
func (p *jsonParser) better(f field, rank uint8) bool {
	if was := p.rank[f]; was != 0 && was <= rank+1 {
		return false
	}
	p.rank[f] = rank + 1
	return true
}
