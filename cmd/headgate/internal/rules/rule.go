// Package rules decides HTTP requests by rules: which requests, counted by what key, under which
// limits.
//
// All rules that match a request decide together: each of them grants, or nothing is charged.
// Rules in [Shadow] decide by themselves, and deny nothing.
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
	Host   string // with or without a port
	Path   string // decoded, without the query; see [TargetPath]
	Query  string // encoded, without the question mark
	Header http.Header
	Body   bool       // there is one, as far as is known
	Client netip.Addr // after trusted proxies; see [ClientAddress]
	Model  string     // that the body asks; set by [Question.Expect]
}

// Rule says which requests get which limits.
type Rule struct {
	// Name is that of a limit ([headgate.Limit.Named]). State, metrics and overrides belong to it.
	Name    string
	Match   Match
	Exempt  []netip.Prefix   // clients that the rule does not ask about
	Key     []KeyPart        // what is counted; empty: all requests together
	AnyKey  bool             // programs may name keys that Key does not make
	Limits  []headgate.Limit // all must grant; named after the rule: name, name.2, ...
	Permits int64            // requests at once; 0: no bound
	Mode    Mode
	Cost    Cost
	Count   Count
	Clear   Count // the statuses of responses that put the key back in its initial state
	Reply   Reply
	// Headroom is what classes of requests leave to others.
	Headroom Headroom
	// MaxWait, above 0, holds requests that the rule would deny, until their turn, for at most this
	// long: 1ms to 20s. At most MaxWaiting wait at once in this process; 0 means 100.
	MaxWait    time.Duration
	MaxWaiting int
	// RetryWithin is the longest wait after which a denied client is asked to try again. One that
	// would wait longer, or is banned, is asked not to. 0 means a minute.
	RetryWithin time.Duration
	// LabelKeys lets metrics carry the keys of this rule, up to a bound.
	LabelKeys bool
}

// Mode says what a rule does with its decisions.
type Mode uint8

// The modes. A rule in Shadow decides and counts, and denies nothing. It is asked after those that
// enforce.
const (
	Enforce Mode = iota
	Shadow
	Off
)

// Match says which requests a rule applies to. An empty field matches everything.
type Match struct {
	Methods []string // GET matches HEAD, too
	Hosts   []string // exact, or *.example.com for all names below
	Path    string   // exact, a prefix such as /x/*, or re: and a regular expression
	Clients []netip.Prefix
}

// KeyPart is a part of a key, such as ip, ip/56, ip/24/56, header:NAME, header:NAME|NAME,
// cookie:NAME, query:NAME, path or const:TEXT.
type KeyPart struct {
	Source string // ip, header, cookie, query, path, host, method, body or const
	Name   string // of a cookie or parameter, or of headers, joined by |; the text of const; model
	Bits4  int    // of an IPv4 address that count; 0: 32
	Bits   int    // of an IPv6 address that count; 0: 64
}

// Cost says how many tokens a request takes. At most one field is set, besides Estimate.
type Cost struct {
	Fixed          int64  // 0: 1
	RequestHeader  string // the header field that holds the cost; less than 1 counts as 1
	ResponseHeader string // that holds the cost; Estimate is charged before the request
	Estimate       int64  // of ResponseHeader; 0: 1
	Tokens         *TokenCost
}

// Override gives keys of a rule other limits, or bans them.
type Override struct {
	Rule   string
	Key    string           // the text of a key, such as ip:192.0.2.1; * stands for any text
	Limits []headgate.Limit // instead of the rule's, with their names
	Ban    bool
	Until  time.Time // zero: without end
	Note   string
	By     string
}
