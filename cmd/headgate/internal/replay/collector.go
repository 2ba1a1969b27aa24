package replay

import "bytes"

// collector puts the parts of a request into an entry, by the names that they have in a line.
type collector struct {
	wanted
	times timestamps
	e     *entry
	rank  [fieldAgent + 1]uint8 // of the member that set each field, plus 1
	name  [64]byte

	text, timeText []byte // a line that a shipper has put into a member, quoted, and its time
	joined         []byte // a time in two parts, and spaces
}

// Reasons why a line is not a request.
const (
	whyUnknown  = "not in a known format"
	whyNoTime   = "no time that can be read"
	whyNoClient = "no client address"
)

func (p *collector) begin(e *entry) {
	p.e, p.rank = e, [len(p.rank)]uint8{}
	p.text, p.timeText, p.joined = nil, nil, p.joined[:0]
}

// end completes the entry, and returns the reason why it is none, if so.
func (p *collector) end() string {
	e := p.e
	if e.at == 0 && len(p.joined) > 0 {
		e.at, _ = p.times.read(bytes.TrimSpace(p.joined))
	}
	if e.at == 0 && len(e.stamp) > 0 {
		e.at, _ = p.times.read(e.stamp)
	}
	if len(e.addr) == 0 && isAddress(e.host) && !p.names.hold(fieldAddr) {
		e.addr = e.host // some configurations name Apache's %h so
	}
	if e.at == 0 {
		return whyNoTime
	}
	return ""
}

// meaning is what the member with a certain name holds.
type meaning struct {
	field  field
	rank   uint8
	header int   // its index in wanted.headers, or -1
	back   uint8 // as in named
}

var nothing = meaning{header: -1}

// canonical returns a name in lower case, without dashes, underscores, dots, spaces and @, or
// nil if it is too long to be a known one.
func (p *collector) canonical(raw []byte) []byte {
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

func (p *collector) find(name []byte, in place) meaning {
	m, known := meanings[in][string(name)]
	if !known || p.names.hold(m.field) ||
		!p.status && (m.field == fieldStatus || m.field == fieldResponse) {
		m = nothing
	}
	if len(p.headers) > 0 {
		m.header = p.header(name, in)
	}
	return m
}

// header returns the index of the wanted header that a member holds, or -1.
func (p *collector) header(name []byte, in place) int {
	switch in {
	case inAgent:
		if string(name) != "original" {
			return -1
		}
		name = []byte("useragent")
	case atTop:
		prefixes := []string{"http", "requestheader", "request", "header", "clientrequest", "cs"}
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

func (p *collector) headerIndex(name []byte) int {
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
func (p *collector) set(m meaning, v []byte) {
	if len(present(v)) == 0 {
		p.e.odd = p.e.odd ||
			m.field == fieldMethod || m.field == fieldTarget || m.field == fieldLine
		return
	}
	if m.header >= 0 {
		p.e.headers[m.header] = v
	}
	switch m.field {
	case fieldTime:
		p.setTime(m.rank, v)
	case fieldAddr:
		p.keep(&p.e.addr, fieldAddr, m.rank, addressOf(v, m.back))
	case fieldPeer, fieldClient:
		if v = addressOf(v, m.back); isAddress(v) {
			p.keep(&p.e.addr, fieldAddr, m.rank, v)
		}
	case fieldMethod:
		p.keep(&p.e.method, fieldMethod, m.rank, v)
	case fieldTarget, fieldURL:
		p.keep(&p.e.target, fieldTarget, m.rank, v)
	case fieldLine, fieldRequest:
		method, target := requestLine(v)
		p.e.odd = p.e.odd || len(target) == 0
		p.keep(&p.e.method, fieldMethod, m.rank, method)
		p.keep(&p.e.target, fieldTarget, m.rank, target)
	case fieldHost:
		p.keep(&p.e.host, fieldHost, m.rank, v)
	case fieldStatus:
		if v = v[bytes.LastIndexByte(v, ' ')+1:]; isStatus(v) { // after those of upstreams
			p.keep(&p.e.status, fieldStatus, m.rank, v)
		}
	}
}

// keep sets a part of the entry, unless v is nil or a better member has set it.
func (p *collector) keep(to *[]byte, f field, rank uint8, v []byte) {
	if v != nil && p.better(f, rank) {
		*to = v
	}
}

// better reports whether no member of the same or a lower rank has set f before, and records
// the rank.
func (p *collector) better(f field, rank uint8) bool {
	if was := p.rank[f]; was != 0 && was <= rank+1 {
		return false
	}
	p.rank[f] = rank + 1
	return true
}

// setTime keeps a time, or one of the two parts of one, of which the date comes first.
func (p *collector) setTime(rank uint8, v []byte) {
	if v[0] == '[' {
		v = bytes.TrimSuffix(v[1:], []byte{']'})
	}
	if len(v) == 0 {
		return
	}
	if at, ok := p.times.read(v); ok {
		if p.better(fieldTime, rank) {
			p.e.at, p.timeText = at, v
		}
		return
	}
	if rank < 2 && len(v) < 40 && (v[0] == '2' || bytes.IndexByte(v, ':') == 2) { // no duration
		p.joined = append(append(p.joined, v...), ' ')
	}
}

// addressOf returns the last address of a list, because each proxy adds the one that it was asked
// from, or the one that is so far before it. Of a shorter list, it returns the first.
func addressOf(v []byte, back uint8) []byte {
	for i := bytes.LastIndexByte(v, ','); i >= 0; i = bytes.LastIndexByte(v, ',') {
		if back == 0 {
			v = v[i+1:]
			break
		}
		v, back = v[:i], back-1
	}
	return bytes.Trim(v, "\t +\"") // as IIS writes a space, and JSON a text of several
}
