package replay

import "bytes"

// jsonParser reads a line that is one JSON object. It finds the request under the names that
// servers and loggers use, see [members].
type jsonParser struct {
	wanted
	times timestamps
	seen  bool

	scan jsonScanner
	e    *entry
	rank [fieldAgent + 1]uint8 // of the member that set each field, plus 1
	name [64]byte

	members int // of this line, so far
	last    []remembered
}

func (p *jsonParser) known() bool { return p.seen }

func (p *jsonParser) parse(line []byte, e *entry) string {
	p.scan.begin(line)
	p.e, p.rank, p.members = e, [len(p.rank)]uint8{}, 0
	if !p.scan.enter('{') {
		return "not a JSON object"
	}
	if !p.object(atTop, 0) || !p.scan.atEnd() {
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
		if s.enter('}') {
			return true
		}
		if !first && !s.enter(',') {
			return false
		}
		m, ok := p.next(in)
		if !ok || !p.member(m, in, depth) {
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
		case c == '-' || c == '_' || c == '.' || c == '@' || c == ' ':
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
	text    []byte // the name in its quotes, and the colon
	in      place
	meaning meaning
}

// next reads the name of a member and returns its meaning. The lines of a log mostly have the
// same members in the same order, so the name at the same position in the line before is tried
// first.
func (p *jsonParser) next(in place) (m meaning, ok bool) {
	s, i := &p.scan, p.members
	p.members++
	s.peek()
	if i < len(p.last) && p.last[i].in == in && bytes.HasPrefix(s.b[s.at:], p.last[i].text) {
		s.at += len(p.last[i].text)
		return p.last[i].meaning, true
	}
	begin := s.at
	raw, ok := s.key()
	if !ok {
		return nothing, false
	}
	m = p.meaning(p.canonical(raw), in)
	if i == len(p.last) && i < 100 {
		p.last = append(p.last, remembered{})
	}
	if i < len(p.last) && len(raw) < 100 {
		p.last[i] = remembered{append(p.last[i].text[:0], s.b[begin:s.at]...), in, m}
	}
	return m, true
}

func (p *jsonParser) meaning(name []byte, in place) meaning {
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
func (p *jsonParser) member(m meaning, in place, depth int) bool {
	if m == nothing {
		return p.scan.skip()
	}
	s := &p.scan
	switch s.peek() {
	case '{':
		to, ok := p.descend(m.field, in)
		if !ok || depth == 4 {
			return s.skip()
		}
		return s.enter('{') && p.object(to, depth+1)
	case '[':
		if m.header < 0 {
			return s.skip()
		}
		return p.first(m)
	case '"':
		v, ok := s.text()
		if ok {
			p.set(m, v)
		}
		return ok
	default:
		v, ok := s.bare()
		if ok && string(v) != "null" {
			p.set(m, v)
		}
		return ok
	}
}

// descend returns the place of the members of an object that is the value of f.
func (p *jsonParser) descend(f field, in place) (place, bool) {
	switch {
	case f == fieldRequest:
		return atTop, true
	case f == fieldClient:
		return inClient, true
	case f == fieldResponse:
		return inResponse, true
	case f == fieldURL:
		return inURL, true
	case f == fieldHeaders && len(p.headers) > 0:
		return inHeaders, true
	case f == fieldAgent && len(p.headers) > 0:
		return inAgent, true
	}
	return in, false
}

// first reads an array whose first text is the value of a header.
func (p *jsonParser) first(m meaning) bool {
	at := p.scan.at
	if p.scan.enter('[') && p.scan.peek() == '"' {
		if v, ok := p.scan.text(); ok {
			p.set(meaning{header: m.header}, v)
		}
	}
	p.scan.at = at
	return p.scan.skip()
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
		if p.better(fieldAddr, m.rank) {
			p.e.addr = v
		}
	case fieldMethod:
		if p.better(fieldMethod, m.rank) {
			p.e.method = v
		}
	case fieldTarget, fieldURL:
		if p.better(fieldTarget, m.rank) {
			p.e.target = v
		}
	case fieldLine, fieldRequest:
		p.setLine(m.rank, v)
	case fieldHost:
		if p.better(fieldHost, m.rank) {
			p.e.host = v
		}
	case fieldStatus:
		if isStatus(v) && p.better(fieldStatus, m.rank) {
			p.e.status = v
		}
	}
}

// setLine stores the method and target of a request line.
func (p *jsonParser) setLine(rank uint8, v []byte) {
	method, target := requestLine(v)
	if method != nil && p.better(fieldMethod, rank) {
		p.e.method = method
	}
	if target != nil && p.better(fieldTarget, rank) {
		p.e.target = target
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
