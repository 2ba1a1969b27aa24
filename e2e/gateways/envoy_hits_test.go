//go:build gateways

package gateways

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// openRoutes starts the page's Envoy for descriptors with other routes and another domain file. The
// pairs are edited in its configuration.
func openRoutes(t *testing.T, routes, domain string, pairs ...string) *site {
	t.Helper()
	found := files(t, "envoy.md")
	config := cut(t, found["envoy-descriptors.yaml"], "              routes:\n", "          http_filters:",
		"              routes:\n"+routes)
	for i := 0; i < len(pairs); i += 2 {
		config = edit(t, config, pairs[i], pairs[i+1])
	}
	found["headgate.yaml"], found["envoy.yaml"] = domain, config
	return gateways["Envoy"].openWith(t, found)
}

const perRoute = `"@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute`

// However Envoy sends the cost of a request, a client that asks for twice its limit gets its limit,
// and its denied requests do not prolong its wait.
func TestCostsInFrontOfRequests(t *testing.T) {
	t.Parallel()
	routes, domain := "", "domain: edge\ndescriptors:\n"
	rows := []struct{ limit, cost string }{
		{"limit: 60/d", ""},
		{"rate_limit: {unit: day, requests_per_unit: 60}", "{number: 1}"},
		{"limit: 60/d", "filter state"},
		{"limit: 60/d", "{number: 1}"},
		{"limit: 300/d", "{number: 5}"},
		{"limit: 60/d sliding-window", "{number: 1}"},
		{"limit: 300/d sliding-window", "{number: 5}"},
		{"limit: 60/d fixed-window", "{number: 1}"},
		{"limit: 300/d sliding-log", "{number: 5}"},
		{"limit: 60/d stepped", "{number: 1}"},
		{"limit: 300/week tz UTC", `{format: "%REQ(x-cost)%"}`},
		{"limit: 1200/d burst 600", "{number: 10}"},
	}
	for i, row := range rows {
		domain += fmt.Sprintf("  - {key: generic_key, value: row%d, %s}\n", i, row.limit)
		action := fmt.Sprintf("- actions: [{generic_key: {descriptor_value: row%d}}]", i)
		match := fmt.Sprintf("              - match: {path: /%d}\n", i)
		switch row.cost {
		case "", "filter state":
			routes += match + "                route: {cluster: app, rate_limits: [{actions: " +
				fmt.Sprintf("[{generic_key: {descriptor_value: row%d}}]}]}\n", i)
		default:
			routes += match + "                route: {cluster: app}\n                typed_per_filter_config:\n" +
				"                  envoy.filters.http.ratelimit:\n                    " + perRoute + "\n" +
				"                    rate_limits:\n                    " + action + "\n                      hits_addend: " + row.cost + "\n"
		}
	}
	const limiter = "          - name: envoy.filters.http.ratelimit\n"
	s := openRoutes(t, routes, domain, limiter, `          - name: envoy.filters.http.set_filter_state
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config
              on_request_headers:
              - object_key: envoy.ratelimit.hits_addend
                format_string: {text_format_source: {inline_string: "%REQ(x-hits)%"}}
                skip_if_empty: true
`+limiter)
	for i, row := range rows {
		granted, first, last := 0, 0, 0
		hits := ""
		if row.cost == "filter state" {
			hits = "1"
		}
		for range 120 {
			a := s.send(t, "GET", "/"+strconv.Itoa(i), nil, "X-Cost: 5", "X-Hits: "+hits)
			if a.StatusCode == http.StatusOK {
				granted++
				continue
			}
			last, _ = strconv.Atoi(a.Header.Get("Retry-After"))
			if first == 0 {
				first = last
			}
		}
		// A bucket of 60 a day gets a token in 24 minutes.
		if granted < 60 || granted > 61 || first == 0 || last > first {
			t.Errorf("%s, %s: %d of 120; the first denial says %d s, the last %d s", row.limit, row.cost, granted, first, last)
		}
	}
}

// The page's route peeks, and charges what the response says. A client that has used more than its
// limit waits for all of it, and no other client does.
func TestTokensOfResponses(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tokens", "40")
	}))
	t.Cleanup(app.Close)
	_, port, _ := strings.Cut(app.Listener.Addr().String(), ":")
	found := files(t, "envoy.md")
	route := "                " + strings.ReplaceAll(strings.TrimSpace(found["token-route"]), "\n", "\n                ")
	s := openRoutes(t, "              - match: {prefix: /}\n                route: {cluster: app}\n"+route+"\n",
		edit(t, found["tokens.yaml"], "100000/m", "100/d"), "port_value: 3000", "port_value: "+port)
	granted := 0
	var last answer
	until(t, "the client is over its limit", func() bool {
		last = s.send(t, "GET", "/", nil, "X-User: a")
		if last.StatusCode == http.StatusOK {
			granted++
		}
		return last.StatusCode == http.StatusTooManyRequests
	})
	// A token comes back in 864 s, and at least 20 tokens are owed.
	if wait, err := strconv.Atoi(last.Header.Get("Retry-After")); err != nil || granted < 3 || wait < 20*864-60 {
		t.Errorf("%d granted; Retry-After is %d", granted, wait)
	}
	if other := s.send(t, "GET", "/", nil, "X-User: b"); other.StatusCode != http.StatusOK {
		t.Errorf("another client: %s", other.Status)
	}
}

// Every byte and every length is a key: neither lets a client pass its limit, or that of others.
func TestBytesOfClients(t *testing.T) {
	t.Parallel()
	const routes = `              - match: {prefix: /}
                route:
                  cluster: app
                  rate_limits:
                  - actions: [{request_headers: {header_name: x-api, descriptor_key: header}}]
                  - actions: [{query_parameters: {query_parameter_name: u, descriptor_key: query}}]
`
	const domain = `domain: edge
descriptors:
  - {key: header, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: query, limit: 1/365d}
`
	s := openRoutes(t, routes, domain, "          stat_prefix: web\n", "          stat_prefix: web\n          max_request_headers_kb: 300\n")
	send := func(target, field string) [2]int {
		text := "GET " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + field + "\r\n\r\n"
		return [2]int{s.from(t, "127.0.0.1", text), s.from(t, "127.0.0.1", text)}
	}
	once, refused := [2]int{http.StatusOK, http.StatusTooManyRequests}, [2]int{400, 400}
	for b := range 256 {
		want := once
		if b < ' ' && b != '\t' && b != '\r' || b == 0x7f {
			want = refused // by Envoy
		}
		if got := send("/", "X-Api: a"+string([]byte{byte(b)})+"b"); got != want {
			t.Errorf("the byte %#x in a field: %v; want %v", b, got, want)
		}
		if got := send(fmt.Sprintf("/?u=a%%%02xb", b), "X-Other: a"); got != once {
			t.Errorf("the byte %#x in a query: %v; want %v", b, got, once)
		}
	}
	for _, n := range []int{1, 64, 4_095, 4_097, 45_000, 65_535, 65_537, 100_000} {
		value := strings.Repeat("l", n-1)
		for _, last := range []string{"x", "y"} { // another key
			if got := send("/", "X-Api: "+value+last); got != once {
				t.Errorf("a field of %d bytes: %v", n, got)
			}
			if got := send("/?u="+value+last, "X-Other: a"); got != once {
				t.Errorf("a query of %d bytes: %v", n, got)
			}
		}
	}
}
