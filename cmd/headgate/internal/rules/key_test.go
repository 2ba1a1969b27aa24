package rules

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// keyOf returns the key of q under the given parts.
func keyOf(t testing.TB, q *Request, parts ...string) string {
	t.Helper()
	r := Rule{Name: "r", Permits: 1}
	for _, text := range parts {
		p, err := ParseKeyPart(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Key = append(r.Key, p)
	}
	target := newTarget(q)
	return newSet(t, r).rules[0].key(&target)
}

func TestKey(t *testing.T) {
	request := func(client string) *Request {
		q := &Request{
			Method: "get", Host: "API.example.com:80", Path: "//a/b/",
			Query: "a=1&%4Bey=%41+%2bb%2520&two=1&two=2&same=x&same=%78&Same=+x&bare&x;b=2&plus=a%2Bb",
			Header: http.Header{
				"X-Key": {"first", "second"}, "X-Odd": {"a|b%c"}, "X-Long": {strings.Repeat("x", 129)}, "X-Fits": {strings.Repeat("x", 128)},
				"Cookie":        {"sid=42; other=1", `c=%41; c="\101"; d=a; d=b`},
				"Authorization": {"BEARER \t A|b "}, "X-Authorization": {"sk-A"}, "X-Hash": {"sha256:00"}, "X-Bytes": {"a\xff"},
			},
		}
		if client != "" {
			q.Client = netip.MustParseAddr(client)
		}
		return q
	}
	for _, c := range []struct {
		client, parts, want string
	}{
		{"192.0.2.1", "", "all"},
		{"192.0.2.1", "ip", "ip:192.0.2.1"},
		{"192.0.2.1", "ip/56", "ip:192.0.2.1"},
		{"192.0.2.1", "ip/24/56", "ip:192.0.2.0/24"},
		{"192.0.2.1", "ip/32/56", "ip:192.0.2.1"},
		{"::ffff:192.0.2.1", "ip/24/64 path", "ip:192.0.2.0/24|path:/a/b"},
		{"2001:db8:0:ffff::1", "ip/24/56", "ip:2001:db8:0:ff00::/56"},
		{"", "ip/24/56", "ip:unknown"},
		{"2001:db8::1:2:3:4", "ip", "ip:2001:db8::/64"},
		{"2001:db8::1:2:3:4", "ip/128", "ip:2001:db8::1:2:3:4"},
		{"2001:db8:0:ffff::1", "ip/56", "ip:2001:db8:0:ff00::/56"},
		{"fe80::1%eth0", "ip/128", "ip:fe80::1"},
		{"::ffff:192.0.2.1", "ip", "ip:192.0.2.1"},
		{"", "ip", "ip:unknown"},
		{"", "header:x-key", "header:first"},
		{"", "header:X-Missing", "header:"},
		{"", "header:X-Fits", "header:" + strings.Repeat("x", 128)},
		{"", "header:host", "header:api.example.com"},
		{"", "header:X-Odd", "header:a|b%c"},
		{"", "header:X-Odd const:all", "header:a%7Cb%25c|const:all"},
		{"", "cookie:sid", "cookie:42"},
		{"", "cookie:none", "cookie:"},
		{"", "cookie:c", "cookie:A"}, // two spellings of one cookie
		{"", "cookie:d", "cookie:several"},
		{"", "query:key", "query:A +b"}, // the name and the value in other spellings
		{"", "query:two", "query:several"},
		{"", "query:same", "query:x"},
		{"", "query:bare", "query:"},
		{"", "query:b", "query:2"},
		{"", "query:plus ip", "query:a+b|ip:unknown"},
		{"", "header:X-Missing|Host", "header:api.example.com"},
		{"", "header:authorization", "header:bearer A|b"},
		{"", "header:Authorization ip", "header:bearer A%7Cb|ip:unknown"},
		{"", "header:X-Authorization", "header:sk-A"}, // without a scheme, it is a token
		{"", "header:x-missing|authorization|x-key", "header:bearer A|b"},
		{"", "header:X-Key|Authorization", "header:first"},
		{"", "header:X-Missing|X-None", "header:"},
		{"", "path host method", "path:/a/b|host:api.example.com|method:GET"},
		{"192.0.2.1", "ip path", "ip:192.0.2.1|path:/a/b"},
	} {
		if got := keyOf(t, request(c.client), strings.Fields(c.parts)...); got != c.want {
			t.Errorf("%s %s: %s; want %s", c.client, c.parts, got, c.want)
		}
	}
	for _, hashed := range []string{"header:X-Long", "header:X-Hash", "header:X-Bytes"} {
		got := keyOf(t, request(""), hashed)
		if !strings.HasPrefix(got, "header:sha256:") || len(got) != len("header:sha256:")+64 {
			t.Errorf("%s: %s", hashed, got)
		}
	}
	q := request("")
	q.Method = "INVENTED"
	if got := keyOf(t, q, "method"); got != "method:other" {
		t.Errorf("an invented method: %s", got)
	}
}

// Some services separate parameters by semicolons, and most end a query at #.
func TestQuerySpellings(t *testing.T) {
	for query, want := range map[string]string{
		"key=a": "a", "key=a#1": "a", "key=a;x": "a", "x=1;key=a": "a", "x#&key=b": "",
		"key=a;key=b": "several", "key=a%3Bx": "a;x", "key=a%23": "a#",
	} {
		if got := keyOf(t, &Request{Query: query}, "query:key"); got != "query:"+want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// A program that uses the library counts by the same keys.
func TestKeysOfTheLibrary(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://A.example:80/x", nil)
	r.RemoteAddr = "192.0.2.1:80"
	r.Header = http.Header{
		"X-Key": {"k|", "second"}, "X-Long": {strings.Repeat("x", 129)}, "X-Bytes": {"\xff"},
		"Authorization": {"BEARER  A"}, "Cookie": {`c="%42"; d=1; d=2`}, "X-Hash": {"sha256:00"},
	}
	q := &Request{Host: r.Host, Path: r.URL.Path, Header: r.Header,
		Client: netip.MustParseAddr("192.0.2.1")}
	join := []httplimit.KeyFunc{httplimit.RemoteAddress}
	parts := []string{"ip"}
	for _, name := range []string{"X-Key", "X-Long", "X-Bytes", "Authorization", "X-Hash", "Host"} {
		parts, join = append(parts, "header:"+name), append(join, httplimit.Header(name))
	}
	parts = append(parts, "cookie:c", "cookie:d", "path")
	join = append(join, httplimit.Cookie("c"), httplimit.Cookie("d"), httplimit.Path())
	for i, part := range parts {
		if got, want := httplimit.Key(join[i])(r), keyOf(t, q, part); got != want {
			t.Errorf("%s: %s; want %s", part, got, want)
		}
	}
	if got, want := httplimit.Key(httplimit.Join(join...))(r), keyOf(t, q, parts...); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// A cookie that net/http drops is not that of a client without one.
func TestCookieThatIsNotValid(t *testing.T) {
	for value, want := range map[string]string{
		`{"a":1}`: `cookie:{"a":1}`, "café": "cookie:café", `"quoted"`: "cookie:quoted",
		"first; c=second": "cookie:several", "": "cookie:", "x; cc=2; c-c=3; d-c=4": "cookie:x",
		"new\xff0": "cookie:sha256:" +
			"d7e5b35abfd83a7be142aa96bb103266cb3ed3a46d3c0ef78348c479a82ba233",
	} {
		q := &Request{Header: http.Header{"Cookie": {"c=" + value}}}
		if got := keyOf(t, q, "cookie:c"); got != want {
			t.Errorf("%q: %s; want %s", value, got, want)
		}
	}
}

// Each key is UTF-8, so that JSON, files and the console can name it. Other bytes, as text that
// looks like the key of such bytes, make other keys.
func TestKeysAreUTF8(t *testing.T) {
	seen := make(map[string]string)
	add := func(value string) (key string) {
		key = keyOf(t, &Request{Header: http.Header{"X": {value}}}, "header:X")
		if other, found := seen[key]; found {
			t.Errorf("%q and %q have the key %q", other, value, key)
		}
		seen[key] = value
		return key
	}
	for _, value := range []string{"\ufffd", "\xff", "\xfe", "a\xff", "\xed\xa0\x80", "%FF", `\xff`} {
		key := add(value)
		if !utf8.ValidString(value) { // and a client may send the text of its key
			add(strings.TrimPrefix(key, "header:"))
		}
	}
	for _, part := range []string{"header:X", "header:Host", "cookie:c", "path", "host", "method"} {
		for b := range 256 {
			text := "/a" + string([]byte{byte(b)})
			q := &Request{
				Method: text, Host: text, Path: text,
				Header: http.Header{"X": {text}, "Cookie": {"c=" + text}},
			}
			for _, key := range []string{keyOf(t, q, part), keyOf(t, q, "ip", part)} {
				if !utf8.ValidString(key) {
					t.Errorf("%q is a key", key)
				}
			}
		}
	}
}

// Values that look like several parts do not make the key of another request.
func TestKeysDoNotCollide(t *testing.T) {
	values := []string{"", "a", "|", "a|", "|a", "%7C", "a%7C", "%", "a|header:", "header:a", "7C"}
	seen := make(map[string]string)
	for _, x := range values {
		for _, y := range values {
			q := &Request{Header: http.Header{"X": {x}, "Y": {y}}}
			key, pair := keyOf(t, q, "header:X", "header:Y"), x+" and "+y
			if other, found := seen[key]; found {
				t.Errorf("%s and %s have the key %s", pair, other, key)
			}
			seen[key] = pair
		}
	}
}

func TestClientAddress(t *testing.T) {
	for _, c := range []struct{ remote, forwarded, trusted, want string }{
		{"192.0.2.1:80", "203.0.113.9", "", "192.0.2.1"},
		{"192.0.2.1:80", "203.0.113.9", "10.0.0.0/8", "192.0.2.1"},
		{"10.0.0.1:80", "203.0.113.9", "10.0.0.0/8", "203.0.113.9"},
		{"10.0.0.1:80", "1.2.3.4, 203.0.113.9, 10.0.0.2", "10.0.0.0/8", "203.0.113.9"},
		{"10.0.0.1:80", "2001:db8::1", "10.0.0.0/8", "2001:db8::1"},
		{"[::1]:80", "203.0.113.9", "::1/128", "203.0.113.9"},
		{"nonsense", "", "", ""},
	} {
		var trusted []netip.Prefix
		if c.trusted != "" {
			trusted = append(trusted, netip.MustParsePrefix(c.trusted))
		}
		client, err := ClientAddress(trusted)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		r.Header.Set("X-Forwarded-For", c.forwarded)
		got := ""
		if at := client(r); at.IsValid() {
			got = at.String()
		}
		if got != c.want {
			t.Errorf("%s for %s, trusting %q: %q; want %q", c.remote, c.forwarded, c.trusted, got, c.want)
		}
	}
	if _, err := ClientAddress([]netip.Prefix{{}}); err == nil {
		t.Error("the zero prefix is accepted")
	}
}

func TestNamedLimits(t *testing.T) {
	limits := Named("a", []headgate.Limit{headgate.PerSecond(1), headgate.PerHour(1).Named("x")})
	if limits[0].Name() != "a" || limits[1].Name() != "a.2" {
		t.Errorf("%s %s", limits[0].Name(), limits[1].Name())
	}
}
