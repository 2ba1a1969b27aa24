package xds

import (
	"errors"
	"fmt"

	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// typeURL is that of the resources.
const typeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// maxDepth bounds how deep descriptors are nested.
const maxDepth = 100

var errTooDeep = errors.New("descriptors are nested too deep; want at most 100 levels")

// decodeDomain decodes a RateLimitConfig.
func decodeDomain(message []byte) (*envoy.Domain, error) {
	var c ratelimit.RateLimitConfig
	if err := proto.Unmarshal(message, &c); err != nil {
		return nil, fmt.Errorf("xds resource: %w", err)
	}
	d := &envoy.Domain{Name: c.GetDomain(), File: "xds resource " + c.GetName()}
	var err error
	if d.Descriptors, err = specs(c.GetDescriptors(), 1); err != nil {
		return nil, fmt.Errorf("%s: %w", d.File, err)
	}
	return d, nil
}

// specs converts descriptors at a depth.
func specs(list []*ratelimit.RateLimitDescriptor, depth int) (all []envoy.Spec, err error) {
	if len(list) > 0 && depth > maxDepth {
		return nil, errTooDeep
	}
	for _, d := range list {
		s := envoy.Spec{
			Key: d.GetKey(), Value: d.GetValue(), RateLimit: rateLimit(d.GetRateLimit()),
			ShadowMode: d.GetShadowMode(), DetailedMetric: d.GetDetailedMetric(),
		}
		if s.Descriptors, err = specs(d.GetDescriptors(), depth+1); err != nil {
			return nil, err
		}
		if err := addNewer(&s, d.ProtoReflect().GetUnknown()); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// addNewer sets the fields that the generated type does not have yet: quota_mode and metadata.
func addNewer(s *envoy.Spec, unknown []byte) error {
	for len(unknown) > 0 { // all of it is well-formed, or proto.Unmarshal had failed
		number, kind, n := protowire.ConsumeTag(unknown)
		unknown = unknown[n:]
		switch {
		case number == 7 && kind == protowire.VarintType:
			on, _ := protowire.ConsumeVarint(unknown)
			s.QuotaMode = on != 0
		case number == 8 && kind == protowire.BytesType:
			encoded, _ := protowire.ConsumeBytes(unknown)
			var metadata structpb.Struct
			if err := proto.Unmarshal(encoded, &metadata); err != nil {
				return fmt.Errorf("metadata: %w", err)
			}
			s.Metadata = metadata.AsMap()
		}
		unknown = unknown[protowire.ConsumeFieldValue(number, kind, unknown):]
	}
	return nil
}

func rateLimit(p *ratelimit.RateLimitPolicy) *envoy.RateLimit {
	if p == nil {
		return nil
	}
	l := &envoy.RateLimit{
		RequestsPerUnit: p.GetRequestsPerUnit(), Unlimited: p.GetUnlimited(), Name: p.GetName(),
	}
	if unit := envoy.Unit(p.GetUnit()); unit != envoy.UnitUnknown || !l.Unlimited {
		l.Unit = unit.String()
	}
	for _, r := range p.GetReplaces() {
		l.Replaces = append(l.Replaces, r.GetName())
	}
	return l
}
