// Package rules decides HTTP requests by rules: which requests, counted by what key, under which
// limits.
package rules

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/headgate/headgate"
)

// Request is what rules see of an HTTP request.
type Request struct {
	Method string
	Host   string
	Path   string // without the query
	Header http.Header
	Client netip.Addr // after trusted proxies
}

// Rule says which requests get which limits.
type Rule struct {
	Name    string // state, metrics and overrides belong to it
	Match   Match
	Key     []KeyPart        // what is counted; empty: all requests together
	Limits  []headgate.Limit // all must grant; named after the rule: name, name.2, ...
	Permits int64            // requests at once; 0: no bound
	Mode    Mode
	Cost    Cost
	// LabelKeys lets metrics carry the keys of this rule, up to a bound.
	LabelKeys bool
}

// Mode says what a rule does with its decisions.
type Mode uint8

// The modes. A rule in Shadow decides and counts, and denies nothing.
const (
	Enforce Mode = iota
	Shadow
	Off
)

// Match says which requests a rule applies to. An empty field matches everything.
type Match struct {
	Methods []string
	Hosts   []string // exact, or *.example.com
	Path    string   // exact, a prefix such as /x/*, or re: and a regular expression
}

// KeyPart is one part of a key: ip, ip/64, header:NAME, cookie:NAME, path, host, method, const:TEXT.
type KeyPart struct {
	Source string // ip, header, cookie, path, host, method or const
	Name   string // of a header or cookie; the text of const
	Bits   int    // of an IPv6 address that count; 0: 64
}

// Cost says how many tokens a request takes.
type Cost struct {
	Fixed          int64  // if neither field is named; 1 by default
	RequestHeader  string // the header field that holds the cost
	ResponseHeader string // charged after the response
}

// Override gives keys of a rule other limits, or bans them.
type Override struct {
	Rule   string
	Key    string           // the text of a key, such as ip:192.0.2.1; * stands for any text
	Limits []headgate.Limit // instead of the rule's
	Ban    bool
	Until  time.Time // zero: without end
	Note   string
	By     string
}
