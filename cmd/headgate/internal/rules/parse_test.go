package rules

import (
	"reflect"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

func TestParseKeyPart(t *testing.T) {
	for text, want := range map[string]KeyPart{
		"ip":               {Source: "ip"},
		"ip/56":            {Source: "ip", Bits: 56},
		"ip/24/56":         {Source: "ip", Bits4: 24, Bits: 56},
		"ip/32/24":         {Source: "ip", Bits4: 32, Bits: 24},
		"query:api key":    {Source: "query", Name: "api key"},
		"header:x-api-key": {Source: "header", Name: "X-Api-Key"},
		"cookie:sid":       {Source: "cookie", Name: "sid"},
		"path":             {Source: "path"},
		"host":             {Source: "host"},
		"method":           {Source: "method"},
		"const:all of it":  {Source: "const", Name: "all of it"},
	} {
		got, err := ParseKeyPart(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := ParseKeyPart(got.String()); err != nil || again != got {
			t.Errorf("%s is written %s", text, got)
		}
	}
	for _, bad := range []string{
		"", "IP", "ip/", "ip/0", "ip/129", "ip/-1", "ip/+8", "ip:1", "header", "header:", "header:a b",
		"cookie:", "path:/x", "const", "const:", "query:", "port",
		"ip/24", "ip/32", "ip/33/64", "ip/24/", "ip/24/129", "ip/0/64", "ip/24/64/1", "ip//64",
	} {
		if p, err := ParseKeyPart(bad); err == nil || !strings.Contains(err.Error(), "; want ") {
			t.Errorf("%q: %+v, %v", bad, p, err)
		}
	}
}

func TestParseCost(t *testing.T) {
	for text, want := range map[string]Cost{
		"":                       {},
		"1":                      {Fixed: 1},
		"20":                     {Fixed: 20},
		"header:x-cost":          {RequestHeader: "X-Cost"},
		"response:x-tokens-used": {ResponseHeader: "X-Tokens-Used"},
	} {
		got, err := ParseCost(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseCost(got.String()); err != nil || got != (Cost{}) && again != got ||
			again.String() != got.String() {
			t.Errorf("%q: %q: %+v, %v", text, got.String(), again, err)
		}
	}
	for _, bad := range []string{
		"0", "-1", "1.5", "many", "header:", "query:cost", "response:a b", "header:X estimate 5",
		"response:X estimate 5", "tokens", "tokens estimate 1 input 1 output 1 cached 1",
	} {
		if c, err := ParseCost(bad); err == nil || !strings.Contains(err.Error(), "; want ") {
			t.Errorf("%q: %+v, %v", bad, c, err)
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range []Mode{Enforce, Shadow, Off} {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%s: %v, %v", m, got, err)
		}
	}
	if _, err := ParseMode("on"); err == nil || !strings.Contains(err.Error(), "; want ") {
		t.Errorf("on: %v", err)
	}
}

func TestPartsOfMatchesAreRefused(t *testing.T) {
	for _, c := range []struct{ method, host, path, want string }{
		{method: "GET POST", want: `"GET POST" is not a method`},
		{host: "*", want: `"*" is not a host`},
		{host: "a.*.com", want: `"a.*.com" is not a host`},
		{host: "http://a", want: `"http://a" is not a host`},
		{path: "login", want: `"login" is not a path`},
		{path: "/x*", want: `"/x*" is not a path`},
		{path: "/*/x", want: `"/*/x" is not a path`},
		{path: "/x?y", want: `"/x?y" is not a path`},
		{path: "re:(", want: `"(" is not a regular expression`},
		{path: "/a//b", want: `want "/a/b"`},
		{path: "/a/../b/*", want: `want "/b/*"`},
	} {
		err := CheckPath(c.path)
		if c.method != "" {
			_, err = ParseMethod(c.method)
		}
		if c.host != "" {
			_, err = ParseHost(c.host)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "; want ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestNewSetRefuses(t *testing.T) {
	limits := []headgate.Limit{headgate.PerSecond(1)}
	estimated := Rule{Name: "a", Permits: 1, Cost: Cost{ResponseHeader: "X", Estimate: -1}}
	for want, list := range map[string][]Rule{
		`rule "": name: "" has 0 bytes`:           {{Limits: limits}},
		`rule "a b": name: "a b" is not a name`:   {{Name: "a b", Limits: limits}},
		`rule "nginx": name: "nginx" is reserved`: {{Name: "nginx", Limits: limits}},
		`rule "a": limits: is missing; want`:      {{Name: "a"}},
		`rule "a": limits: headgate: `:            {{Name: "a", Limits: []headgate.Limit{{}}}},
		`rule "a": limits: has 17 entries; want`:  {{Name: "a", Limits: make([]headgate.Limit, 17)}},
		`rule "a": permits: is 65536`:             {{Name: "a", Permits: 65_536}},
		`rule "a": match: "x" is not a path`:      {{Name: "a", Permits: 1, Match: Match{Path: "x"}}},
		`rule "a": cost.estimate: is -1; want 0`:  {estimated},
	} {
		if _, err := NewSet(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
