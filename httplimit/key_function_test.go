package httplimit_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/headgate/headgate/httplimit"
)

func TestKeys(t *testing.T) {
	r := request("192.0.2.1:1", "X-Api-Key: abc", "X-Two: a", "X-Two: b", "Authorization: BASIC \t YQ== ",
		"Cookie: session=s1; other=o", "X-Long: "+strings.Repeat("x", 500))
	r.Method, r.URL = http.MethodPost, &url.URL{Path: "/a//b/../c"}
	r.Host = "Example.COM.:80"
	address := httplimit.RemoteAddress
	for _, c := range []struct {
		name string
		key  httplimit.KeyFunc
		want string
	}{
		{"header", httplimit.Header("x-api-key"), "header:abc"},
		{"header of two lines", httplimit.Header("X-Two"), "header:a"},
		{"the host", httplimit.Header("host"), "header:example.com"},
		{"credentials", httplimit.Header("authorization"), "header:basic YQ=="},
		{"no header", httplimit.Header("X-None"), ""},
		{"cookie", httplimit.Cookie("session"), "cookie:s1"},
		{"no cookie", httplimit.Cookie("none"), ""},
		{"path", httplimit.Path(), "path:/a/c"},
		{"several", httplimit.Join(address, httplimit.Path(), httplimit.Header("X-None")),
			"ip:192.0.2.1|path:/a/c|"},
		{"the first", httplimit.FirstOf(httplimit.Header("X-None"), httplimit.Cookie("none"),
			address), "ip:192.0.2.1"},
		{"none", httplimit.FirstOf(httplimit.Header("X-None")), ""},
		{"a long value", httplimit.Header("X-Long"),
			"header:sha256:" +
				"c38c2bf3055c516a98ac5d97f30e7c364e827bc0199e1c3415b794afbe55dcad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := httplimit.Key(c.key)(r); got != c.want {
				t.Errorf("key %q; want %q", got, c.want)
			}
		})
	}
}

// A cookie that net/http drops is not that of a client without one.
func TestCookie(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{`session={"a":1}`, `cookie:{"a":1}`},
		{"session=café", "cookie:café"},
		{"session=new\xff0", "cookie:sha256:" +
			"d7e5b35abfd83a7be142aa96bb103266cb3ed3a46d3c0ef78348c479a82ba233"},
		{"other=o;\tsession = a=b ; x", "cookie:a=b"},
		{`session="quoted"`, "cookie:quoted"},
		{`session="`, ""},
		{"session=first; session=second", "cookie:several"},
		{"other=o\nsession=first\nsession=second", "cookie:several"},
		{"mysession=1; session2=2; Session=3; =4", ""},
		{"session=", ""},
		{`session=""`, ""},
		{"session", ""},
		{"", ""},
	} {
		r := request("192.0.2.1:1")
		r.Header["Cookie"] = strings.Split(c.fields, "\n")
		if got := httplimit.Key(httplimit.Cookie("session"))(r); got != c.want {
			t.Errorf("%q: key %q; want %q", c.fields, got, c.want)
		}
	}
}

// No two requests that differ in a part share a key, however the parts are cut.
func TestKeysDoNotCollide(t *testing.T) {
	two := httplimit.Key(httplimit.Join(httplimit.Header("A"), httplimit.Header("B")))
	seen := map[string]string{}
	for _, a := range []string{"", "user", "user_x", "x", "user|header:y", "header:y", "%7C", "|", "a|",
		strings.Repeat("z", 200)} {
		for _, b := range []string{"", "y", "x_y", "_x_y", "header:user", "|", "%7C"} {
			r := request("192.0.2.1:1", "A: "+a, "B: "+b)
			key, name := two(r), a+"|"+b
			if other, taken := seen[key]; taken {
				t.Errorf("%q and %q share %q", name, other, key)
			}
			seen[key] = name
		}
	}
	// A header cannot pass for an address, nor a value for the hash of one.
	api := httplimit.Key(httplimit.FirstOf(httplimit.Header("X-Api-Key"), httplimit.RemoteAddress))
	if a, b := api(request("192.0.2.1:1")),
		api(request("192.0.2.9:1", "X-Api-Key: ip:192.0.2.1")); a == b {
		t.Errorf("a header passes for the address %q", a)
	}
	header := httplimit.Key(httplimit.Header("X"))
	long := header(request("", "X: "+strings.Repeat("x", 500)))
	if forged := header(request("", "X: "+strings.TrimPrefix(long, "header:"))); forged == long {
		t.Error("a value passes for the hash of another")
	}
}
