package config

import "go.yaml.in/yaml/v3"

func (r *reader) domain(n *yaml.Node, path string) { r.faultf(n, path, "not yet") }
