package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// domain reads a document in the dialect of envoyproxy/ratelimit. Its faults have their places.
func (r *reader) domain(n *yaml.Node, _ string) {
	d, faults := envoy.ParseDomain(r.file, n)
	if len(faults) > 0 {
		r.faults = append(r.faults, faults...)
		return
	}
	r.config.Warnings = append(r.config.Warnings, d.Warnings...)
	r.config.Domains = append(r.config.Domains, d)
}
