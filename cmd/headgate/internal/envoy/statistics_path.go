package envoy

// ownPath reports whether statistics of r for a descriptor that matched steps belong to the key
// of r, and not to a path that holds values of the descriptor.
func ownPath(r *rule, d *Descriptor, steps []step) bool {
	if r.detailed {
		return false
	}
	for i, s := range steps {
		e := &d.Entries[i]
		switch s.by {
		case byValue:
			if e.Value == "" {
				return false
			}
		case byWildcard:
			if s.node.valued && !s.node.share ||
				len(withoutKey(s.node.name, e.Key)) == len(s.node.name) {
				return false
			}
		case byKey:
			if s.node.valued && e.Value != "" {
				return false
			}
		}
	}
	return true
}

// appendPath appends the path, below the domain, under which statistics of r for d are counted.
func appendPath(b []byte, r *rule, d *Descriptor, steps []step) []byte {
	shared := false
	for _, s := range steps {
		shared = shared || s.by == byWildcard && s.node.share
	}
	for i, s := range steps {
		e := &d.Entries[i]
		if i > 0 {
			b = append(b, '.')
		}
		b = append(b, e.Key...)
		value := metricValue(s, e)
		if r.detailed {
			value = detailedValue(s, e)
		}
		if value != "" || r.detailed && !shared {
			b = append(append(b, '_'), value...)
		}
	}
	return b
}

func metricValue(s step, e *Entry) string {
	switch {
	case s.by == byWildcard && (s.node.share || !s.node.valued):
		return withoutKey(s.node.name, e.Key)
	case s.by == byKey && !s.node.valued:
		return ""
	}
	return e.Value
}

func detailedValue(s step, e *Entry) string {
	if pattern, shared := s.pattern(e); shared {
		return pattern
	}
	return e.Value
}

// appendOverridePath appends the path of a descriptor that brings its own limit.
func appendOverridePath(b []byte, d *Descriptor) []byte {
	from := len(b)
	for i := range d.Entries {
		e := &d.Entries[i]
		if len(b) > from {
			b = append(b, '.')
		}
		b = append(b, e.Key...)
		if e.Value != "" {
			b = append(append(b, '_'), e.Value...)
		}
	}
	return b
}
