package rules

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// limited is a rule with a limit that is never reached.
func limited(name string, m Match) Rule {
	return Rule{Name: name, Match: m, Limits: []headgate.Limit{headgate.PerSecond(1000)}}
}

func newSet(t testing.TB, list ...Rule) *Set {
	t.Helper()
	s, err := NewSet(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// matching returns the names of the rules of s that match q.
func matching(s *Set, q *Request) string {
	target := newTarget(q)
	var names []string
	for _, r := range s.index.match(&target, nil) {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

func TestMatch(t *testing.T) {
	s := newSet(t,
		limited("all", Match{}),
		limited("login", Match{Methods: []string{"POST"}, Path: "/login"}),
		limited("api", Match{Path: "/api/*"}),
		limited("deep", Match{Path: "/api/v1/users/*"}),
		limited("version", Match{Path: "re:^/v[12]/"}),
		limited("host", Match{Hosts: []string{"API.example.com"}}),
		limited("below", Match{Hosts: []string{"*.example.com"}}),
		limited("get", Match{Methods: []string{"get"}, Hosts: []string{"a", "b"}}),
		limited("six", Match{Hosts: []string{"[::1]"}}),
		limited("every", Match{Path: "/*"}),
		limited("root", Match{Path: "/"}),
		limited("slash", Match{Path: "/docs/"}),
	)
	for _, c := range []struct{ method, host, target, want string }{
		{"POST", "h", "/login", "all login every"},
		{"GET", "h", "/login", "all every"},
		{"post", "h", "/login", "all login every"},
		{"GET", "h", "/", "all every root"},
		{"GET", "h", "", "all every root"},
		{"OPTIONS", "h", "*", "all every"},
		{"GET", "h", "/api", "all api every"},
		{"GET", "h", "/api/", "all api every"},
		{"GET", "h", "/apis", "all every"},
		{"GET", "h", "/api/v1/users", "all api deep every"},
		{"GET", "h", "/api/v1/users/7/x/y/z", "all api deep every"},
		{"GET", "h", "/v1/a", "all version every"},
		{"GET", "h", "/v1/", "all version every"},
		{"GET", "h", "/v1", "all every"},
		{"GET", "h", "/docs", "all every slash"},
		{"GET", "Api.Example.COM:8080", "/x", "all host below every"},
		{"GET", "api.example.com.", "/x", "all host below every"},
		{"GET", "example.com", "/x", "all every"},
		{"GET", ".example.com", "/x", "all every"},
		{"GET", "a", "/x", "all get every"},
		{"HEAD", "b:1", "/x", "all get every"},
		{"PUT", "b", "/x", "all every"},
		{"GET", "[::1]:80", "/x", "all six every"},
		{"GET", "[::1]", "/x", "all six every"},

		// Other spellings of /login and of what is below /api.
		{"POST", "h", "/login/", "all login every"},
		{"POST", "h", "//login", "all login every"},
		{"POST", "h", "/./login", "all login every"},
		{"POST", "h", "/x/../login", "all login every"},
		{"POST", "h", "/../login", "all login every"},
		{"POST", "h", "/%6Cogin", "all login every"},
		{"POST", "h", "/x/%2e%2E/login", "all login every"},
		{"POST", "h", "%2flogin", "all login every"},
		{"POST", "h", "/login?x=/other", "all login every"},
		{"POST", "h", "/login#x", "all login every"},
		{"POST", "h", "/login;a=b", "all login every"},
		{"POST", "h", "/x/..;/login;", "all login every"},
		{"POST", "h", "http://other/login?x", "all login every"},
		{"POST", "h", "http://other", "all every root"},
		{"GET", "h", "/api//v1/./users/", "all api deep every"},
		{"GET", "h", "/api%2Fv1%2fusers", "all api deep every"},
		// Paths that some servers shorten and others do not.
		{"GET", "h", "/api/v1/users/..;/../x", "all api deep every"},
		{"GET", "h", "/api/x%2F..%2F..%2Fy", "all api every"},
		{"POST", "h", "/api/x/../../login", "all login api every"},
		{"POST", "h", "/login//..", "all login every root"},
		{"GET", "h", "//api/./..;/x", "all api every"},
		{"GET", "h", "/v1/..;/..", "all version every root"},
		// Not decoded twice, and letters keep their case.
		{"POST", "h", "/%256Cogin", "all every"},
		{"POST", "h", "/Login", "all every"},
		{"POST", "h", "/login%", "all every"},
		{"POST", "h", "/login%zz", "all every"},
	} {
		q := &Request{Method: c.method, Host: c.host, Path: TargetPath(c.target)}
		if got := matching(s, q); got != c.want {
			t.Errorf("%s %s %s: %s; want %s", c.method, c.host, c.target, got, c.want)
		}
	}
}

// Browsers ask by a preflight whether a page may send a request. Only rules that name OPTIONS count
// it.
func TestPreflight(t *testing.T) {
	s := newSet(t,
		limited("all", Match{}),
		limited("options", Match{Methods: []string{"OPTIONS", "GET"}, Path: "/*"}),
		limited("post", Match{Methods: []string{"POST"}, Path: "/*"}),
	)
	full := http.Header{"Origin": {"https://a"}, "Access-Control-Request-Method": {"POST"}}
	for _, c := range []struct {
		method, without, want string
	}{
		{"OPTIONS", "", "options"},
		{"options", "", "options"},
		{"OPTIONS", "Origin", "all options"},
		{"OPTIONS", "Access-Control-Request-Method", "all options"},
		{"POST", "", "all post"},
	} {
		header := full.Clone()
		header.Del(c.without)
		if got := matching(s, &Request{Method: c.method, Path: "/a", Header: header}); got != c.want {
			t.Errorf("%s without %q: %s; want %s", c.method, c.without, got, c.want)
		}
	}
	for _, more := range []string{"Cookie", "Authorization", "body"} { // which no preflight has
		header := full.Clone()
		header.Set(more, "a")
		q := &Request{Method: "OPTIONS", Path: "/a", Header: header, Body: more == "body"}
		if got := matching(s, q); got != "all options" {
			t.Errorf("with %s: %s", more, got)
		}
	}
}

// The index finds what a walk through all rules finds.
func TestIndexFindsAll(t *testing.T) {
	paths := []string{"", "/", "/*", "/a", "/a/*", "/a/b", "/a/b/*", "re:^/a", "re:b$", "/c/d/e/*"}
	hosts := [][]string{nil, {"h"}, {"*.h"}, {"h", "*.h"}, {"g", "h", "h"}}
	var list []Rule
	for i, p := range paths {
		for j, h := range hosts {
			list = append(list, limited(fmt.Sprintf("r%d-%d", i, j), Match{Path: p, Hosts: h}))
		}
	}
	s := newSet(t, list...)
	for _, host := range []string{"h", "x.h", "g", "other"} {
		for _, p := range []string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/c/d/e", "/c/d/e/f/g", "/c"} {
			q := &Request{Method: "GET", Host: host, Path: p}
			var want []string
			for i := range list {
				if alone := newSet(t, list[i]); matching(alone, q) != "" {
					want = append(want, list[i].Name)
				}
			}
			if got := strings.Fields(matching(s, q)); !slices.Equal(got, want) {
				t.Errorf("%s%s: %q; want %q", host, p, got, want)
			}
		}
	}
}

// Of many rules, only those that may match are looked at.
func TestIndexLooksAtFew(t *testing.T) {
	var list []Rule
	for i := range 1000 {
		n := fmt.Sprint(i)
		list = append(list,
			limited("exact"+n, Match{Path: "/exact/" + n}),
			limited("prefix"+n, Match{Path: "/prefix/" + n + "/*"}),
			limited("host"+n, Match{Hosts: []string{"host" + n}}))
	}
	x := newSet(t, list...).index
	for _, found := range []map[string][]*rule{x.exact, x.prefixes, x.hosts} {
		if len(found) != 1000 {
			t.Errorf("%d entries, want 1000", len(found))
		}
		for key, rules := range found {
			if len(rules) != 1 {
				t.Errorf("%s: %d rules", key, len(rules))
			}
		}
	}
	if len(x.rest) != 0 || x.depth != 2 {
		t.Errorf("%d rules are always looked at, and prefixes down to %d", len(x.rest), x.depth)
	}
}

func TestModeOffMatchesNothing(t *testing.T) {
	r := limited("off", Match{})
	r.Mode = Off
	if got := matching(newSet(t, r), &Request{Path: "/"}); got != "" {
		t.Errorf("%s matches", got)
	}
}

// The forms of request targets that servers take for the same path.
func TestTargetPath(t *testing.T) {
	for target, want := range map[string]string{
		"/login": "/login", "/%6cogin?a#b": "/login", "http://h/login": "/login", "http://h": "/",
		"HTTP://h:80//login": "//login", "http:login": "/login", "http:/login?a": "/login",
		"x:%6cogin": "/login", "login": "/login", "": "/", "*": "/*", "?x": "/", "http://h?/login": "/",
		"/a:login": "/a:login", "/http://h/login": "/http://h/login", "http:////login": "//login",
		"//login": "//login",
	} {
		if got := TargetPath(target); got != want {
			t.Errorf("%q: %q; want %q", target, got, want)
		}
	}
}

// Expressions are also tried with the slash that a path has at its end.
func TestSlashAtTheEnd(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]bool{
		"/a": false, "/a/": true, "/a//b": false, "/a/./": true, "/a;x": false, "/a;x/": true,
		"": true, "/": true, "/.": true, "//": true, "/a/..": true,
	} {
		if clean, slash := cleanPath(p); slash != want {
			t.Errorf("%q becomes %q, slash %v; want %v", p, clean, slash, want)
		}
	}
}

func FuzzTargetPath(f *testing.F) {
	for _, s := range []string{"", "/a/../b", "/%2e%2E/x;y/", "http://h/a?b", "*", "%", "/%zz//."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean, _ := cleanPath(TargetPath(s))
		if again, _ := cleanPath(clean); again != clean || !strings.HasPrefix(clean, "/") {
			t.Errorf("%q becomes %q, and that %q", s, clean, again)
		}
		for segment := range strings.SplitSeq(clean[1:], "/") {
			if segment == "." || segment == ".." || segment == "" && clean != "/" {
				t.Errorf("%q becomes %q", s, clean)
			}
		}
	})
}

// Networks say which clients a rule is for, and which it exempts, also if a gateway names the rule.
// A client whose address is unknown is in no network.
func TestNetworks(t *testing.T) {
	networks := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	inside := Rule{
		Name: "inside", Limits: per(1), Match: Match{Clients: networks("172.16.0.0/12", "2001:db8::/32")},
		Exempt: networks("172.16.7.0/24"),
	}
	e := newEngine(t, Options{}, inside)
	for _, c := range []struct {
		client         string
		matches, named bool // the rule denies the second request
	}{
		{"172.31.255.1", true, true},
		{"::ffff:172.16.0.1", true, true},
		{"172.32.0.1", false, true},
		{"172.16.7.9", false, false},
		{"2001:db8:1::1%eth0", true, true},
		{"2001:db9::1", false, true},
		{"", false, true},
	} {
		at, _ := netip.ParseAddr(c.client)
		q := &Request{Path: "/", Client: at}
		for _, ask := range []struct {
			denies bool
			of     func() *Question
		}{
			{c.matches, func() *Question { return e.Match(q) }},
			{c.named, func() *Question {
				named, err := e.MatchRule("inside", q)
				if err != nil {
					t.Fatal(err)
				}
				return named
			}},
		} {
			if _, err := e.Reset(t.Context(), "inside", KeyOfAll); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				v, err := ask.of().Decide(t.Context())
				if err != nil || v.Allowed != (i == 0 || !ask.denies) {
					t.Errorf("request %d of %q: %+v, %v; want a denial: %t", i, c.client, v, err, ask.denies)
				}
			}
		}
	}
}
