package replay

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"golang.org/x/net/http/httpguts"
)

const byNames = "ip, path, method, host, header:NAME, several of them joined by commas, or all"

// By defines the key of a request. Requests with equal keys share their limits.
//
// A key of several parts joins them by commas. A comma or backslash inside a part is escaped by a
// backslash, so that different parts never make the same key.
type By struct {
	parts []part
}

// ByIP makes keys of the client's address, without its port. An IPv6 client counts by its /64
// network, all of which one user may own.
var ByIP = By{[]part{{kind: byIP}}}

type part struct {
	kind   kind
	header string // as given
}

type kind uint8

const (
	byIP kind = iota
	byPath
	byMethod
	byHost
	byHeader
	byAll

	byRequest // all that rules decide by; for Review
)

var kinds = [...]string{"ip", "path", "method", "host", "header", "all"}

// ParseBy reads a By: ip, path (without its query), method, host, header:NAME, several of them
// joined by commas, or all, which is one key for all requests.
func ParseBy(text string) (By, error) {
	var by By
	for name := range strings.SplitSeq(text, ",") {
		p, ok := parsePart(strings.TrimSpace(name))
		if !ok {
			return By{}, &headgate.InvalidError{Field: "by", Value: quoted(text), Want: byNames}
		}
		if slices.ContainsFunc(by.parts, p.same) {
			return By{}, &headgate.InvalidError{
				Field: "by", Value: quoted(text), Want: "each part once",
			}
		}
		by.parts = append(by.parts, p)
	}
	if len(by.parts) > 1 && slices.Contains(by.parts, part{kind: byAll}) {
		return By{}, &headgate.InvalidError{
			Field: "by", Value: quoted(text), Want: `"all" by itself`,
		}
	}
	return by, nil
}

func parsePart(name string) (part, bool) {
	word, header, hasHeader := strings.Cut(name, ":")
	i := slices.Index(kinds[:], strings.ToLower(word))
	if i < 0 || hasHeader != (kind(i) == byHeader) ||
		hasHeader && !httpguts.ValidHeaderFieldName(header) {
		return part{}, false
	}
	return part{kind(i), header}, true
}

func (p part) same(o part) bool {
	return p.kind == o.kind && headerName(p.header) == headerName(o.header)
}

func (p part) String() string {
	if p.kind == byHeader {
		return "header:" + p.header
	}
	return kinds[p.kind]
}

// String returns the text that [ParseBy] reads.
func (b By) String() string {
	names := make([]string, len(b.parts))
	for i, p := range b.parts {
		names[i] = p.String()
	}
	return strings.Join(names, ",")
}

// MarshalText returns the text that [ParseBy] reads.
func (b By) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// wanted returns the fields that the parsers must find.
func (b By) wanted() (w wanted) {
	for _, p := range b.parts {
		switch p.kind {
		case byIP:
			w.client = true
		case byRequest:
			w.client, w.request = true, true
		case byPath, byMethod:
			w.request = true
		case byHeader:
			w.headers = append(w.headers, headerName(p.header))
		}
	}
	return w
}

// keyer makes keys, each in the memory of the one before.
type keyer struct {
	by  By
	key []byte
	tmp []byte
}

// make returns the key of e, valid until the next call, or the reason why it has none.
func (k *keyer) make(e *entry) (key []byte, why string) {
	k.key = k.key[:0]
	header := 0
	for i, p := range k.by.parts {
		var b []byte
		if p.kind == byHeader {
			if b = e.headers[header]; headerName(p.header) == "xforwardedfor" {
				b = ports.ReplaceAll(b, []byte("$1"))
			}
			header++
		} else {
			b = k.part(p.kind, e)
		}
		if len(b) == 0 {
			return nil, p.missing(e)
		}
		if len(k.by.parts) == 1 {
			return b, ""
		}
		if i > 0 {
			k.key = append(k.key, ',')
		}
		k.key = appendEscaped(k.key, b)
	}
	return k.key, ""
}

// ports are those in a list of addresses, and spaces as IIS writes them.
var ports = regexp.MustCompile(`(\d\.\d+|\]):\d+|\+`)

func (k *keyer) part(kind kind, e *entry) []byte {
	switch kind {
	case byIP:
		return k.address(present(e.addr))
	case byPath:
		return path(e.target)
	case byMethod:
		return present(e.method)
	case byHost:
		return k.lower(withoutPort(present(e.host)))
	case byRequest:
		return k.request(e)
	default:
		return allKey
	}
}

var allKey = []byte("all")

const whyNoRequest = "no request that can be read"

func (p part) missing(e *entry) string {
	switch {
	case p.kind == byIP, p.kind == byRequest && !isAddress(e.addr):
		return whyNoClient
	case p.kind == byRequest && e.odd:
		return "no request"
	case p.kind == byHeader, p.kind == byHost, e.odd:
		return "no " + p.String()
	}
	return whyNoRequest
}

func appendEscaped(to, b []byte) []byte {
	for _, c := range b {
		if c == ',' || c == '\\' {
			to = append(to, '\\')
		}
		to = append(to, c)
	}
	return to
}

// address returns a client as httplimit does: without its port, IPv6 by its /64. Names, and
// anything else that a server logs for a client, stay as they are.
func (k *keyer) address(b []byte) []byte {
	if bytes.IndexByte(b, ':') < 0 {
		return b
	}
	if a, ok := readAddress(b); ok {
		return k.network(a)
	}
	return withoutPort(b)
}

// longestAddress is the length of an address with its zone and port.
const longestAddress = 80

// readAddress reads an IP address, bare or with a port, or in brackets.
func readAddress(b []byte) (netip.Addr, bool) {
	if len(b) > longestAddress {
		return netip.Addr{}, false
	}
	s := string(b)
	if strings.HasSuffix(s, "]") {
		s = strings.Trim(s, "[]")
	} else if s[0] == '[' || strings.Count(s, ":") == 1 {
		a, err := netip.ParseAddrPort(s)
		return a.Addr(), err == nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		a, err = netip.ParseAddr(string(withoutPort(b))) // of IPv6, as HAProxy writes it
	}
	return a, err == nil
}

func (k *keyer) network(a netip.Addr) []byte {
	if a = a.Unmap().WithZone(""); a.Is4() {
		k.tmp = a.AppendTo(k.tmp[:0])
		return k.tmp
	}
	net, _ := a.Prefix(64)
	k.tmp = net.AppendTo(k.tmp[:0])
	return k.tmp
}

// isAddress reports whether b is an IP address, with or without a port.
func isAddress(b []byte) bool {
	if len(b) < 2 || !isDigit(b[len(b)-1]) && bytes.IndexByte(b, ':') < 0 {
		return false
	}
	_, ok := readAddress(b)
	return ok
}

// withoutPort removes the port from a name.
func withoutPort(b []byte) []byte {
	i := bytes.LastIndexByte(b, ':')
	if i < 0 || i+1 == len(b) || len(bytes.TrimLeft(b[i+1:], "0123456789")) > 0 {
		return b
	}
	return b[:i]
}

func (k *keyer) lower(b []byte) []byte {
	k.tmp = append(k.tmp[:0], b...)
	for i, c := range k.tmp {
		if 'A' <= c && c <= 'Z' {
			k.tmp[i] = c | 0x20
		}
	}
	return k.tmp
}

// path returns the target of a request without its query, and without the scheme and host of a
// request to a proxy.
func path(target []byte) []byte {
	if i := bytes.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if len(target) > 0 && target[0] != '/' {
		if _, rest, ok := bytes.Cut(target, []byte("://")); ok {
			if i := bytes.IndexByte(rest, '/'); i >= 0 {
				return rest[i:]
			}
			return []byte{'/'}
		}
	}
	return present(target)
}

// headerName returns one form for all spellings of a header: User-Agent, user_agent, userAgent.
func headerName(s string) string {
	name := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
	if name == "referrer" {
		return "referer"
	}
	return name
}

func quoted(s string) string { return strconv.Quote(s) }
