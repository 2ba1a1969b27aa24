package wire

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// fromGenerated is what a request of the generated type says, in our type.
func fromGenerated(m *rls.RateLimitRequest) envoy.Request {
	r := envoy.Request{Domain: m.GetDomain(), HitsAddend: m.GetHitsAddend()}
	for _, d := range m.GetDescriptors() {
		r.Descriptors = append(r.Descriptors, descriptorFromGenerated(d))
	}
	return r
}

func descriptorFromGenerated(m *common.RateLimitDescriptor) envoy.Descriptor {
	d := envoy.Descriptor{
		HasHits:  m.GetHitsAddend() != nil,
		Hits:     m.GetHitsAddend().GetValue(),
		Negative: m.GetIsNegativeHits(),
	}
	for _, e := range m.GetEntries() {
		d.Entries = append(d.Entries, envoy.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	if o := m.GetLimit(); o != nil {
		d.Override = &envoy.Override{
			RequestsPerUnit: o.GetRequestsPerUnit(),
			Unit:            envoy.Unit(o.GetUnit()),
			Multiplier:      o.GetUnitMultiplier().GetValue(),
		}
	}
	return d
}

func toGenerated(r *envoy.Request) *rls.RateLimitRequest {
	m := &rls.RateLimitRequest{Domain: r.Domain, HitsAddend: r.HitsAddend}
	for _, d := range r.Descriptors {
		out := &common.RateLimitDescriptor{IsNegativeHits: d.Negative}
		for _, e := range d.Entries {
			out.Entries = append(out.Entries,
				&common.RateLimitDescriptor_Entry{Key: e.Key, Value: e.Value})
		}
		if o := d.Override; o != nil {
			out.Limit = &common.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: o.RequestsPerUnit, Unit: typev3.RateLimitUnit(o.Unit),
			}
			if o.Multiplier != 0 {
				out.Limit.UnitMultiplier = wrapperspb.UInt32(o.Multiplier)
			}
		}
		if d.HasHits {
			out.HitsAddend = wrapperspb.UInt64(d.Hits)
		}
		m.Descriptors = append(m.Descriptors, out)
	}
	return m
}

// responseFromGenerated is what a response of the generated type says, in our type.
func responseFromGenerated(t *testing.T, m *rls.RateLimitResponse) envoy.Response {
	t.Helper()
	r := envoy.Response{Code: envoy.Code(m.GetOverallCode())}
	for _, s := range m.GetStatuses() {
		r.Statuses = append(r.Statuses, statusFromGenerated(t, s))
	}
	for _, h := range m.GetResponseHeadersToAdd() {
		r.Headers = append(r.Headers, envoy.Header{Key: h.GetKey(), Value: h.GetValue()})
	}
	if s := m.GetDynamicMetadata(); s != nil {
		r.Metadata = s.AsMap()
	}
	if len(m.GetRequestHeadersToAdd()) > 0 || m.GetQuota() != nil ||
		len(m.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("%v has fields that are never sent", m)
	}
	return r
}

func statusFromGenerated(t *testing.T, m *rls.RateLimitResponse_DescriptorStatus) envoy.Status {
	t.Helper()
	s := envoy.Status{Code: envoy.Code(m.GetCode()), Remaining: m.GetLimitRemaining()}
	if l := m.GetCurrentLimit(); l != nil {
		s.HasLimit = true
		s.Limit = envoy.Limit{
			RequestsPerUnit: l.GetRequestsPerUnit(),
			Unit:            envoy.Unit(l.GetUnit()),
			Multiplier:      l.GetUnitMultiplier().GetValue(),
			Name:            l.GetName(),
		}
	}
	if s.HasLimit != (m.GetDurationUntilReset() != nil) {
		t.Errorf("%v has a limit or a duration without the other", m)
	}
	if err := m.GetDurationUntilReset().CheckValid(); s.HasLimit && err != nil {
		t.Error(err)
	}
	s.Reset = m.GetDurationUntilReset().AsDuration()
	return s
}

// random makes values of the bytes of a fuzzer, and zeros when they are used up.
type random struct{ b []byte }

// bytesFrom returns the bytes of a seed.
func bytesFrom(seed int) []byte {
	b := make([]byte, 400)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	source.Read(b) //nolint:errcheck // it never fails
	return b
}

func (r *random) byte() byte {
	if len(r.b) == 0 {
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *random) n(n int) int { return int(r.byte()) % n }

// number is of any size.
func (r *random) number() (v uint64) {
	for range r.n(9) {
		v = v<<8 | uint64(r.byte())
	}
	return v
}

func (r *random) text() string {
	alphabet := []string{
		"", "a", "remote_address", "\x00", "é", "日本", "\"\\\n", "192.0.2.1", "\U0001F600",
		"</script>&\u2028",
	}
	var text strings.Builder
	for range r.n(4) {
		text.WriteString(alphabet[r.n(len(alphabet))])
	}
	for range r.n(64) / 60 * 100 {
		text.WriteString("0123456789")
	}
	return text.String()
}

func (r *random) request() envoy.Request {
	out := envoy.Request{Domain: r.text(), HitsAddend: uint32(r.number())}
	for range r.n(4) {
		d := envoy.Descriptor{Negative: r.n(4) == 1}
		for range r.n(4) {
			d.Entries = append(d.Entries, envoy.Entry{Key: r.text(), Value: r.text()})
		}
		if r.n(3) == 1 {
			d.Override = &envoy.Override{
				RequestsPerUnit: uint32(r.number()),
				Unit:            envoy.Unit(r.n(10) - 1),
				Multiplier:      uint32(r.number()),
			}
		}
		if r.n(3) == 1 {
			d.HasHits, d.Hits = true, r.number()
		}
		out.Descriptors = append(out.Descriptors, d)
	}
	return out
}

func (r *random) response(t *testing.T) envoy.Response {
	t.Helper()
	out := envoy.Response{Code: envoy.Code(r.n(3))}
	for range r.n(4) {
		s := envoy.Status{Code: envoy.Code(r.n(3)), Remaining: uint32(r.number())}
		if r.n(3) != 0 {
			s.HasLimit = true
			s.Limit = envoy.Limit{
				RequestsPerUnit: uint32(r.number()), Unit: envoy.Unit(r.n(8)),
				Multiplier: uint32(r.number()), Name: r.text(),
			}
			s.Reset = time.Duration(r.number() >> 1)
		}
		out.Statuses = append(out.Statuses, s)
	}
	for range r.n(3) {
		out.Headers = append(out.Headers, envoy.Header{Key: r.text(), Value: r.text()})
	}
	if r.n(3) == 1 {
		out.Metadata = map[string]any{
			"domain": r.text(), "n": float64(r.number()), "is": r.n(2) == 1, "not": nil,
			"list": []any{r.text(), map[string]any{}},
		}
	}
	return out
}
