// Package envoy decides requests of Envoy's rate limit protocol by configuration in the dialect
// of envoyproxy/ratelimit.
package envoy

import (
	"cmp"
	"fmt"
	"time"
)

// Request is a ShouldRateLimit request. A server reuses it: what keeps a part of it, copies it.
type Request struct {
	Domain      string
	Descriptors []Descriptor
	HitsAddend  uint32 // of each descriptor without its own; 0 counts as 1
}

// Descriptor is what is counted: the path of its entries chooses the limit.
type Descriptor struct {
	Entries  []Entry
	Override *Override // a limit in the request, which replaces that of the configuration
	Hits     uint64    // below 2^53, valid if HasHits; 0 is a look that counts nothing
	HasHits  bool
	Negative bool // Hits are refunded, if there are any
}

// Entry is one key and value of a descriptor.
type Entry struct{ Key, Value string }

// Text returns d as in the keys of counters: key=value|key=value.
func (d *Descriptor) Text() string { return DescriptorText(string(appendKey(nil, "", d, nil))) }

// Override is a limit that a request brings with it.
type Override struct {
	RequestsPerUnit uint32
	Unit            Unit
	Multiplier      uint32 // 0 counts as 1
}

// Unit is a unit of time by its number in the protocol.
type Unit int32

// The units of the protocol.
const (
	UnitUnknown Unit = iota
	Second
	Minute
	Hour
	Day
	Month // 30 days
	Year  // 365 days
	Week
)

// Code says whether a request or a descriptor is over its limit.
type Code int32

// The codes of the protocol.
const (
	CodeUnknown Code = iota
	OK
	OverLimit
)

// Response is the answer to a Request. A server reuses it.
type Response struct {
	Code     Code
	Statuses []Status       // one for each descriptor, in their order
	Headers  []Header       // for the client
	Metadata map[string]any // of a google.protobuf.Struct; nil if not asked for
}

// Limits returns for each descriptor the limit that decided, and what it decided, in words.
func (r *Response) Limits() []string {
	texts := make([]string, len(r.Statuses))
	for i, s := range r.Statuses {
		texts[i] = "none"
		if s.HasLimit {
			name := fmt.Sprintf("%d per %s", s.Limit.RequestsPerUnit, s.Limit.Unit)
			texts[i] = fmt.Sprintf("%s: %d left", cmp.Or(s.Limit.Name, name), s.Remaining)
		}
	}
	return texts
}

// Status is the answer for one descriptor.
type Status struct {
	Code      Code
	HasLimit  bool
	Limit     Limit // valid if HasLimit
	Remaining uint32
	Reset     time.Duration // until the limit is reset; valid if HasLimit
}

// Limit is the limit that decided, as the protocol shows it.
type Limit struct {
	RequestsPerUnit uint32
	Unit            Unit
	Multiplier      uint32 // 0: none
	Name            string
}

// Header is a header field for the client.
type Header struct{ Key, Value string }

// Reset empties r and keeps its memory.
func (r *Request) Reset() {
	*r = Request{Descriptors: r.Descriptors[:0]}
}

// Reset empties r and keeps its memory.
func (r *Response) Reset() {
	*r = Response{Statuses: r.Statuses[:0], Headers: r.Headers[:0]}
}
