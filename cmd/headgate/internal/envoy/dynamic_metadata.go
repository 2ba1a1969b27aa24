package envoy

import (
	"fmt"
	"strings"
)

// describe is the dynamic metadata of an answer: the request, and the metadata of the descriptors
// that passed.
func (l *Limiter) describe(w *work, req *Request, statuses []Status) map[string]any {
	descriptors := make([]any, len(req.Descriptors))
	passed := map[string]any{}
	for i := range req.Descriptors {
		descriptors[i] = describeDescriptor(&req.Descriptors[i])
		if it := &w.items[i]; it.rule != nil && statuses[i].Code != OverLimit {
			mergeMetadata(passed, it.rule.metadata)
		}
	}
	domain := strings.ToValidUTF8(req.Domain, "\ufffd")
	fields := map[string]any{"domain": domain, "descriptors": descriptors}
	if req.HitsAddend != 0 {
		fields["hitsAddend"] = float64(req.HitsAddend)
	}
	if len(passed) > 0 {
		fields["metadata"] = passed
	}
	return fields
}

func describeDescriptor(d *Descriptor) map[string]any {
	entries := make([]any, len(d.Entries))
	for i, e := range d.Entries {
		entries[i] = strings.ToValidUTF8(e.Key+"="+e.Value, "\ufffd")
	}
	fields := map[string]any{"entries": entries}
	if o := d.Override; o != nil {
		text := fmt.Sprintf("requests_per_unit:%d unit:%s", o.RequestsPerUnit, o.Unit)
		if o.Multiplier != 0 {
			text += fmt.Sprintf(" unit_multiplier:{value:%d}", o.Multiplier)
		}
		fields["limit"] = text
	}
	if d.HasHits {
		fields["hitsAddend"] = float64(d.Hits)
	}
	return fields
}

// mergeMetadata adds src to dest. Of two values of one key the first one stays, unless both are
// maps.
func mergeMetadata(dest, src map[string]any) {
	for key, value := range src {
		from, isMap := value.(map[string]any)
		old, known := dest[key]
		into, isMap2 := old.(map[string]any)
		switch {
		case known && isMap && isMap2:
			mergeMetadata(into, from)
		case known:
		case isMap:
			copied := make(map[string]any, len(from))
			mergeMetadata(copied, from)
			dest[key] = copied
		default:
			dest[key] = value
		}
	}
}
