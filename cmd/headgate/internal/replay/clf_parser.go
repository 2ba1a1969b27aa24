package replay

import (
	"bytes"
	"regexp"
)

// clfParser reads the Common Log Format and the combined one, which adds the
// referer and the user agent:
//
//	198.18.217.135 - - [17/Dec/2025:09:03:01 +0000] "GET / HTTP/1.1" 502 166 "-" "Mozilla/5.0"
//
// A virtual host may come before the client. Clients can send anything inside the quotes and
// in the user name, so only the client and the time are required. The rest is read as far as
// possible, if By needs it.
type clfParser struct {
	wanted
	times timestamps
}

func (p *clfParser) parse(line []byte, e *entry) string {
	from, to, at := p.time(line)
	if to == 0 {
		return whyUnknown
	}
	if e.at = at; p.names.hold(fieldAddr) {
		return whyNoColumn
	}
	if e.host, e.addr = client(line[:from]); p.client && e.addr == nil {
		return whyNoFront
	}
	if !p.request && !p.status && len(p.headers) == 0 {
		return ""
	}
	request, rest := requestField(line[to:])
	if p.request {
		e.method, e.target = requestLine(request)
		e.odd = request != nil && len(e.target) == 0
	}
	if p.status && beginsStatus(rest) {
		e.status, _ = word(rest[1:])
	}
	if len(p.headers) > 0 {
		p.readHeaders(rest, e)
	}
	return ""
}

// time finds the first bracket that holds a time. The line before it ends at
// from, the line after it begins at to, which is 0 if there is none.
func (p *clfParser) time(line []byte) (from, to int, at int64) {
	for i := 0; ; {
		j := bytes.IndexByte(line[i:], '[')
		if j < 0 {
			return 0, 0, 0
		}
		i += j + 1
		if i < 3 || line[i-2] != ' ' {
			continue
		}
		n := bytes.IndexByte(line[i:min(len(line), i+40)], ']')
		if n < 0 {
			continue
		}
		if at, ok := p.times.read(line[i : i+n]); ok {
			return i - 2, i + n + 1, at
		}
	}
}

// client finds the client in the part before the time: the first address before a dash, which is
// the identity on all servers in use, or else the last address. The user name may hold anything. A
// name is a client only before a dash and a user; a virtual host may come before both. Of
// two addresses, servers in use write the client first or last; so neither counts.
func client(b []byte) (host, addr []byte) {
	first, rest := word(b)
	if string(rest) == "- -" && bytes.Count(first, dot) == 3 && isDigit(first[0]) {
		return nil, first // as most lines begin
	}
	words, at := bytes.SplitN(b, []byte{' '}, 32), -1
	for i, w := range words {
		w = bytes.Trim(w, `"',()`)
		if !isAddress(w) {
			continue
		}
		if at >= 0 && !bytes.HasSuffix(words[at], comma) && !serverPort.Match(words[at]) &&
			!bytes.Equal(words[at], w) {
			return nil, nil
		}
		at = i
		if i == 0 && len(words) == 3 || i+1 < len(words) && isDash(words[i+1]) {
			break // before an identity and a user
		}
	}
	for i := 0; at < 0 && i < min(2, len(words)-2); i++ {
		if isDash(words[i+1]) && hostName.Match(words[i]) {
			at = i
		}
	}
	if at < 0 {
		return nil, nil
	}
	if at == 1 && !bytes.HasSuffix(words[0], comma) {
		host = present(words[0])
	}
	return host, bytes.Trim(words[at], `"',()`)
}

var dot, comma = []byte{'.'}, []byte{','}

// serverPort is an address with a port that is no client's, as Apache's %v:%p may be.
var serverPort = regexp.MustCompile(`^(?:[\d.]+|\[.+\]):\d{1,4}$`)

// hostName is a name that is a client: one with a letter.
var hostName = regexp.MustCompile(`^[\w.-]*[A-Za-z][\w.:-]*$`)

func isDash(b []byte) bool { return len(b) == 1 && b[0] == '-' }

// word cuts b at its first space.
func word(b []byte) (first, rest []byte) {
	first, rest, _ = bytes.Cut(b, []byte{' '})
	return first, rest
}

// requestField cuts the quoted request off the front of b. Quotes inside it should be escaped.
// If they are not, the quote before a status ends it.
func requestField(b []byte) (request, rest []byte) {
	if len(b) < 2 || b[0] != ' ' || b[1] != '"' {
		return nil, nil
	}
	b = b[2:]
	end := -1
	for i := 0; i < len(b); i++ {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			break
		}
		i += j
		if escaped(b, i) {
			continue
		}
		if beginsStatus(b[i+1:]) {
			return b[:i], b[i+1:]
		}
		end = i
	}
	if end < 0 || bytes.IndexByte(b[:end], ' ') < 0 {
		return b, nil // cut off, or closed early
	}
	return b[:end], b[end+1:]
}

// escaped reports whether an odd number of backslashes precedes b[i].
func escaped(b []byte, i int) bool {
	n := 0
	for i-n > 0 && b[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// beginsStatus reports whether b begins with a space and a status: three digits or a dash.
func beginsStatus(b []byte) bool {
	if len(b) < 2 || b[0] != ' ' {
		return false
	}
	status, _ := word(b[1:])
	if len(status) == 1 {
		return status[0] == '-'
	}
	return isStatus(status)
}

func isStatus(b []byte) bool {
	return len(b) == 3 && isDigit(b[0]) && isDigit(b[1]) && isDigit(b[2])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// requestLine splits "GET /path?query HTTP/1.1". The version may be missing, the target may
// hold spaces, and quotes that were closed early are dropped.
func requestLine(b []byte) (method, target []byte) {
	method, target = word(b)
	method = bytes.TrimSuffix(method, []byte{'"'})
	if !isToken(method) {
		return nil, nil
	}
	if i := bytes.Index(target, []byte(" HTTP/")); i >= 0 {
		target = target[:i]
	} else if bytes.HasPrefix(target, []byte("HTTP/")) {
		target = nil
	}
	return method, bytes.Trim(target, `" `)
}

// isToken reports whether b may be a method: letters, dashes and underscores.
func isToken(b []byte) bool {
	for _, c := range b {
		if (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return len(b) > 1 && len(b) <= 32
}

// readHeaders finds the referer and the user agent after status and size.
func (p *clfParser) readHeaders(b []byte, e *entry) {
	var fields [2][]byte
	for i := range fields {
		open := bytes.IndexByte(b, '"')
		if open < 0 {
			break
		}
		b = b[open+1:]
		fields[i], b = quotedField(b)
	}
	for i, name := range p.headers {
		switch name {
		case "referer":
			e.headers[i] = present(fields[0])
		case "useragent":
			e.headers[i] = present(fields[1])
		}
	}
}

// quotedField cuts b at its first quote that ends a field: not escaped, and
// before a space or the end.
func quotedField(b []byte) (field, rest []byte) {
	for i := 0; i < len(b); i++ {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			break
		}
		i += j
		if !escaped(b, i) && (i+1 == len(b) || b[i+1] == ' ') {
			return b[:i], b[i+1:]
		}
	}
	return b, nil
}

// present returns b, or nil if b is the dash that means an absent value.
func present(b []byte) []byte {
	if len(b) == 1 && b[0] == '-' {
		return nil
	}
	return b
}
