package rules

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/internal/keytext"
)

// The functions of this file read the text forms of the configuration. Their errors name the text
// and what would be accepted, without the field, which the caller knows.

const wantKeyPart = "ip, ip/N (N bits of IPv6), ip/M/N (M bits of IPv4), header:NAME, " +
	"header:NAME|NAME (the first that is there), cookie:NAME, query:NAME, path, host, method, " +
	"body:model or const:TEXT"

// ParseKeyPart reads a part of a key: ip, ip/56, ip/24/56, header:NAME, header:NAME|NAME,
// cookie:NAME, query:NAME, path, host, method, body:model or const:TEXT.
func ParseKeyPart(text string) (KeyPart, error) {
	bad := fmt.Errorf("%q is not a part of a key; want %s", text, wantKeyPart)
	source, name, named := strings.Cut(text, ":")
	switch source {
	case "ip", "path", "host", "method":
		if named {
			return KeyPart{}, bad
		}
		return KeyPart{Source: source}, nil
	case "header":
		names := strings.Split(name, "|")
		for i, name := range names {
			if !httpguts.ValidHeaderFieldName(name) {
				return KeyPart{}, bad
			}
			names[i] = http.CanonicalHeaderKey(name)
		}
		return KeyPart{Source: source, Name: strings.Join(names, "|")}, nil
	case "cookie":
		if !httpguts.ValidHeaderFieldName(name) {
			return KeyPart{}, bad
		}
		return KeyPart{Source: source, Name: name}, nil
	case "const", "body", "query":
		if name == "" || source == "body" && name != "model" {
			return KeyPart{}, bad
		}
		return KeyPart{Source: source, Name: name}, nil
	}
	if bits, found := strings.CutPrefix(text, "ip/"); found {
		return parseNetworkPart(bits)
	}
	return KeyPart{}, bad
}

// parseNetworkPart reads the bits of an address that count: N of IPv6, or M/N of IPv4 and IPv6. A
// lone number that both may mean is refused.
func parseNetworkPart(text string) (KeyPart, error) {
	first, second, both := strings.Cut(text, "/")
	if !both {
		first, second = "32", first
	}
	bits4, err4 := strconv.ParseUint(first, 10, 8)
	bits, err := strconv.ParseUint(second, 10, 8)
	switch {
	case err4 != nil || err != nil || bits4 < 1 || bits4 > 32 || bits < 1 || bits > 128:
		return KeyPart{}, fmt.Errorf("%q is not a part of a key; want ip/33 to ip/128 for bits of "+
			"IPv6, or ip/24/64 for bits of IPv4 and of IPv6", "ip/"+text)
	case !both && bits <= 32:
		return KeyPart{}, fmt.Errorf("%[1]q may mean IPv4 or IPv6; want ip/%[2]d/64 for the "+
			"/%[2]d of IPv4, or ip/32/%[2]d for single addresses of IPv4 and the /%[2]d of IPv6",
			"ip/"+text, bits)
	case !both:
		bits4 = 0
	}
	return KeyPart{Source: "ip", Bits4: int(bits4), Bits: int(bits)}, nil
}

// String returns the text form of p.
func (p KeyPart) String() string {
	switch {
	case p.Bits4 > 0:
		return fmt.Sprintf("ip/%d/%d", p.Bits4, p.Bits)
	case p.Bits > 0:
		return "ip/" + strconv.Itoa(p.Bits)
	case p.Name != "":
		return p.Source + ":" + p.Name
	}
	return p.Source
}

// methods are those of the IANA registry, and others that caches, UPnP and Icecast use.
var methods = strings.Fields(`GET HEAD POST PUT PATCH DELETE CONNECT OPTIONS TRACE QUERY
	ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT COPY LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR
	MKCOL MKREDIRECTREF MKWORKSPACE MOVE ORDERPATCH PRI PROPFIND PROPPATCH REBIND REPORT SEARCH
	UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL
	PURGE BAN NOTIFY SUBSCRIBE UNSUBSCRIBE M-SEARCH SOURCE`)

// ParseMethod returns a method in upper case. One that is not known may be a typing error, so it
// must be written as custom:NAME.
func ParseMethod(text string) (string, error) {
	name, custom := strings.CutPrefix(text, "custom:")
	upper := strings.ToUpper(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return "", fmt.Errorf("%q is not a method; want one such as GET", name)
	case custom || slices.Contains(methods, upper):
		return upper, nil
	}
	return "", fmt.Errorf("%q is not a known method; want one such as POST, or custom:%s for a "+
		"method of your own", text, upper)
}

// ParseHost returns a host of a Match in lower case, without a port.
func ParseHost(host string) (string, error) {
	text := keytext.Host(host)
	name := strings.TrimPrefix(text, "*.")
	_, err := netip.ParseAddr(name)
	ascii := strings.IndexFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) < 0
	if err != nil && (name == "" || strings.ContainsAny(name, "*/ :[]") || !ascii) ||
		strings.ContainsAny(host, "/ ") {
		return "", fmt.Errorf("%q is not a host; want a name such as api.example.com or "+
			"*.example.com, in ASCII (xn--...)", host)
	}
	return text, nil
}

const wantPath = "a path such as /login, a prefix such as /api/*, " +
	"or re: and a regular expression such as re:^/v[12]/"

// CheckPath reports what is wrong with the path of a Match.
func CheckPath(path string) error {
	if path == "" {
		return nil
	}
	if expression, found := strings.CutPrefix(path, "re:"); found {
		if _, err := regexp.Compile(expression); err != nil {
			return fmt.Errorf("%q is not a regular expression: %w; want RE2 syntax", expression,
				err)
		}
		if found := escape.FindString(expression); found != "" {
			return fmt.Errorf("%q has %s, but paths are decoded first; want the character, "+
				"or [%%]%s for this text", expression, found, found[1:])
		}
		return nil
	}
	exact := strings.TrimSuffix(path, "/*")
	if path[0] != '/' || strings.ContainsAny(exact, "*?#") {
		return fmt.Errorf("%q is not a path; want %s", path, wantPath)
	}
	clean, _ := cleanPath(unescape(exact))
	if exact != "" && exact != "/" && clean != strings.TrimSuffix(exact, "/") {
		return fmt.Errorf("%q matches nothing, because paths are normalized first; want %q",
			path, clean+path[len(exact):])
	}
	return nil
}

// ParseCost reads a cost: a number of at least 1, header:NAME (of the request), or response:NAME.
func ParseCost(text string) (Cost, error) {
	source, name, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(text, 10, 64)
	switch isName := httpguts.ValidHeaderFieldName(name); {
	case text == "":
		return Cost{}, nil
	case err == nil && n >= 1:
		return Cost{Fixed: n}, nil
	case source == "header" && isName:
		return Cost{RequestHeader: http.CanonicalHeaderKey(name)}, nil
	case source == "response" && isName:
		return Cost{ResponseHeader: http.CanonicalHeaderKey(name)}, nil
	}
	return Cost{}, fmt.Errorf("%q is not a cost; want a whole number of at least 1, header:NAME, "+
		"response:NAME, or a mapping with tokens or response", text)
}

// String returns the text form of c.
func (c Cost) String() string {
	switch {
	case c.RequestHeader != "":
		return "header:" + c.RequestHeader
	case c.ResponseHeader != "" && c.Estimate != 0:
		return fmt.Sprintf("response:%s estimate %d", c.ResponseHeader, c.Estimate)
	case c.ResponseHeader != "":
		return "response:" + c.ResponseHeader
	case c.Tokens != nil:
		t := c.Tokens
		text := fmt.Sprintf("tokens estimate %d input %d output %d cached %d",
			t.Estimate, t.Input, t.Output, t.Cached)
		if t.Bound != "" {
			text += " bound " + t.Bound
		}
		if t.RefundUnknown {
			text += " unknown refund"
		}
		if t.IncludeUsage {
			text += " include_usage"
		}
		return text
	}
	return strconv.FormatInt(max(c.Fixed, 1), 10)
}

var modes = []string{Enforce: "enforce", Shadow: "shadow", Off: "off"}

// ParseMode reads enforce, shadow or off. The empty text is enforce.
func ParseMode(text string) (Mode, error) {
	i := slices.Index(modes, cmp.Or(text, modes[Enforce]))
	if i < 0 {
		return 0, fmt.Errorf("%q is not a mode; want enforce, shadow or off", text)
	}
	return Mode(i), nil
}

// String returns the text form of m.
func (m Mode) String() string { return modes[m] }
