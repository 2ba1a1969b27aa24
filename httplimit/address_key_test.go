package httplimit_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/headgate/headgate/httplimit"
)

func prefixes(texts ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, text := range texts {
		ps = append(ps, netip.MustParsePrefix(text))
	}
	return ps
}

// ours are the proxies of these tests.
var ours = prefixes("10.0.0.0/8", "2001:db8:ffff::/48", "::ffff:172.16.0.0/108")

func request(remote string, fields ...string) *http.Request {
	r := &http.Request{RemoteAddr: remote, Header: http.Header{}}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func clientAddress(t testing.TB, o httplimit.AddressOptions) func(*http.Request) string {
	t.Helper()
	key, err := httplimit.ClientAddress(o)
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.Key(key)
}

func TestAddressErrors(t *testing.T) {
	for _, c := range []struct {
		o    httplimit.AddressOptions
		want string
	}{
		{httplimit.AddressOptions{IPv6Bits: -3},
			"headgate: IPv6Bits is -3; want 1 to 128, or 0 for 64"},
		{httplimit.AddressOptions{IPv6Bits: 129},
			"headgate: IPv6Bits is 129; want 1 to 128, or 0 for 64"},
		{httplimit.AddressOptions{Trusted: make([]netip.Prefix, 1)},
			"headgate: Trusted[0] is invalid Prefix; want a network, such as 10.0.0.0/8 or " +
				"2001:db8::/32"},
		{httplimit.AddressOptions{Trusted: append(prefixes("10.0.0.0/8"),
			netip.PrefixFrom(netip.MustParseAddr("::ffff:0:0"), 95))},
			"headgate: Trusted[1] is ::ffff:0.0.0.0/95; want a network, such as 10.0.0.0/8 " +
				"or 2001:db8::/32"},
	} {
		_, err := httplimit.ClientAddress(c.o)
		if _, same := httplimit.ClientIP(c.o); err == nil || err.Error() != c.want ||
			same.Error() != c.want {
			t.Errorf("errors %v and %v; want %s", err, same, c.want)
		}
	}
}

func TestClientAddress(t *testing.T) {
	none, proxies := httplimit.AddressOptions{}, httplimit.AddressOptions{Trusted: ours}
	wide := func(bits int) httplimit.AddressOptions {
		return httplimit.AddressOptions{IPv6Bits: bits}
	}
	trusting := func(prefix string) httplimit.AddressOptions {
		return httplimit.AddressOptions{Trusted: prefixes(prefix)}
	}
	via := func(remote string, forwarded ...string) *http.Request {
		r := request(remote)
		r.Header["X-Forwarded-For"] = forwarded
		return r
	}
	for _, c := range []struct {
		name string
		o    httplimit.AddressOptions
		r    *http.Request
		want string
	}{
		{"the other end, without its port", none, via("192.0.2.1:1234"), "192.0.2.1"},
		{"IPv6 by /64", none, via("[2001:db8:1:2:3:4:5:6]:1234"), "2001:db8:1:2::/64"},
		{"IPv4 mapped to IPv6", none, via("[::ffff:192.0.2.1]:1234"), "192.0.2.1"},
		{"a zone", none, via("[fe80::1%eth0]:1234"), "fe80::/64"},
		{"no port", none, via("192.0.2.1"), "192.0.2.1"},
		{"IPv6 without a port", none, via("2001:db8::1"), "2001:db8::/64"},
		{"a Unix socket", none, via("@"), "unknown"},
		{"junk", none, via("junk"), "unknown"},
		{"every IPv6 address", wide(128), via("[2001:db8::1]:1"), "2001:db8::1"},
		{"a /48", wide(48), via("[2001:db8:1:2::1]:1"), "2001:db8:1::/48"},
		{"a zone, every address", wide(128), via("[fe80::1%eth0]:1"), "fe80::1"},
		{"IPv4 through NAT64", none, via("[64:ff9b::192.0.2.1]:1"), "192.0.2.1"},
		{"IPv4 beside NAT64", none, via("[64:ff9b:0:0:1::192.0.2.1]:1"), "64:ff9b::/64"},
		{"the owner of a 6to4 prefix", none, via("[2002:c000:201:77::9]:1"), "192.0.2.1"},
		{"a port that is none", none, via("192.0.2.1:abc"), "unknown"},
		{"junk after a bracket", none, via("[2001:db8::1]evil"), "unknown"},
		{"an open bracket", none, via("[2001:db8::1"), "unknown"},
		{"a Unix socket, no proxy trusted", none, via("@", "1.1.1.1"), "unknown"},

		{"no proxy is trusted", none, via("10.0.0.1:1", "192.0.2.1"), "10.0.0.1"},
		{"a stranger is not trusted", proxies, via("192.0.2.9:1", "192.0.2.1"), "192.0.2.9"},
		{"a proxy is", proxies, via("10.0.0.1:1", "192.0.2.1"), "192.0.2.1"},
		{"a mapped proxy is", proxies, via("[::ffff:10.0.0.1]:1", "192.0.2.1"), "192.0.2.1"},
		{"a proxy in a mapped prefix", proxies, via("172.16.9.9:1", "192.0.2.1"), "192.0.2.1"},
		{"an IPv6 proxy", proxies, via("[2001:db8:ffff::1]:1", "2001:db8::1"), "2001:db8::/64"},
		{"a proxy on a Unix socket", proxies, via("@", "192.0.2.1"), "192.0.2.1"},
		{"a proxy on a nameless Unix socket", proxies, via("", "192.0.2.1"), "192.0.2.1"},
		{"a proxy on a named Unix socket", proxies, via("/run/p.sock", "192.0.2.1"), "192.0.2.1"},
		{"a proxy with a zone", trusting("fe80::/10"), via("[fe80::1%eth0]:1", "192.0.2.1"),
			"192.0.2.1"},
		{"empty elements", proxies, via("10.0.0.1:1", "192.0.2.1, , 10.1.1.1,"), "192.0.2.1"},
		{"a 6to4 address of a proxy's", proxies, via("[2002:a00:1::bad]:1", "6.6.6.6"), "10.0.0.1"},
		{"a NAT64 address of a proxy's", proxies, via("[64:ff9b::10.0.0.1]:1", "6.6.6.6"),
			"10.0.0.1"},
		{"a forwarder that claims one", proxies, via("10.0.0.1:1", "6.6.6.6, 2002:a00:9::bad"),
			"10.0.0.9"},
		{"a proxy at a 6to4 address", trusting("2002:c000:201::/48"),
			via("[2002:c000:201::5]:1", "198.51.100.1"), "198.51.100.1"},
		{"a proxy behind NAT64", trusting("64:ff9b::/96"), via("[64:ff9b::5]:1", "198.51.100.1"),
			"198.51.100.1"},
		{"several proxies", proxies, via("10.0.0.1:1", "192.0.2.1, 10.1.1.1,10.2.2.2"),
			"192.0.2.1"},
		{"a forged beginning", proxies, via("10.0.0.1:1", "1.1.1.1, 192.0.2.1, 10.1.1.1"),
			"192.0.2.1"},
		{"a forged line", proxies, via("10.0.0.1:1", "1.1.1.1", "192.0.2.1"), "192.0.2.1"},
		{"a forged proxy of ours", proxies, via("10.0.0.1:1", "10.9.9.9, 192.0.2.1"), "192.0.2.1"},
		{"ports", proxies, via("10.0.0.1:1", "192.0.2.1:99"), "192.0.2.1"},
		{"IPv6 and a port", proxies, via("10.0.0.1:1", "[2001:db8::1]:99"), "2001:db8::/64"},
		{"IPv6 in brackets", proxies, via("10.0.0.1:1", "[2001:db8::1]"), "2001:db8::/64"},
		{"no field", proxies, via("10.0.0.1:1"), "10.0.0.1"},
		{"an empty field", proxies, via("10.0.0.1:1", ""), "10.0.0.1"},
		{"only proxies", proxies, via("10.0.0.1:1", "10.3.3.3, 10.2.2.2"), "10.3.3.3"},
		{"a list that ends in junk", proxies, via("10.0.0.1:1", "1.1.1.1, junk, 10.2.2.2"),
			"10.2.2.2"},
		{"nothing but junk", proxies, via("10.0.0.1:1", "1.1.1.1, unknown"), "10.0.0.1"},
		{"the other field is not read", proxies,
			request("10.0.0.1:1", "Forwarded: for=1.1.1.1", "X-Real-Ip: 1.1.1.2"), "10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want = "ip:" + c.want
			if got := clientAddress(t, c.o)(c.r); got != c.want {
				t.Errorf("key %q; want %q", got, c.want)
			}
			if got := httplimit.Key(httplimit.RemoteAddress)(c.r); len(c.o.Trusted) == 0 &&
				c.o.IPv6Bits == 0 && got != c.want {
				t.Errorf("key of the other end %q; want %q", got, c.want)
			}
			find, err := httplimit.ClientIP(c.o)
			if err != nil {
				t.Fatal(err)
			}
			c.o.IPv6Bits = 128
			whole := clientAddress(t, c.o)(c.r)
			if at, ok := find(c.r); ok != (whole != "ip:unknown") || ok &&
				"ip:"+at.String() != whole {
				t.Errorf("address %s, %t; want that of %q", at, ok, whole)
			}
		})
	}
}

// Whatever a client sends, its own proxy's word is the last: it stays one key.
func FuzzForgedForwarding(f *testing.F) {
	for _, s := range []string{"", "1.1.1.1", "10.0.0.1", "junk", `"`, `for="`, "[",
		"::ffff:1.1.1.1", "fe80::1%25", "1.1.1.1:99", ",,,", "for=1.1.1.1;for=2.2.2.2", "\x00",
		"[::1]:x", "unknown, _x"} {
		f.Add(s, s)
	}
	plain := clientAddress(f, httplimit.AddressOptions{Trusted: ours})
	alone := clientAddress(f, httplimit.AddressOptions{})
	f.Fuzz(func(t *testing.T, line, start string) {
		const want = "ip:192.0.2.1"
		for _, c := range []struct {
			key func(*http.Request) string
			r   *http.Request
		}{
			{plain, request("10.0.0.1:1", "X-Forwarded-For: "+line,
				"X-Forwarded-For: "+start+", 192.0.2.1, 10.2.2.2", "Forwarded: "+line,
				"X-Real-Ip: "+line)},
			{alone, request("192.0.2.1:1", "X-Forwarded-For: "+line, "Forwarded: "+start,
				"X-Real-Ip: "+line)},
			{plain, request("192.0.2.1:1", "X-Forwarded-For: "+line, "X-Forwarded-For: "+start)},
		} {
			if got := c.key(c.r); got != want {
				t.Errorf("%v: key %q; want %q", c.r.Header, got, want)
			}
		}
		// Nor does the list itself, read alone, do worse than end in some key.
		if got := plain(request("10.0.0.1:1", "X-Forwarded-For: "+line)); !strings.HasPrefix(got,
			"ip:") || len(got) > 64 {
			t.Errorf("key %q", got)
		}
	})
}
