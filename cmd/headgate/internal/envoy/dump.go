package envoy

import (
	"strconv"
	"strings"
)

// String lists the limits, one on a line, as /rlconfig prints them.
func (c *Config) String() string {
	var b []byte
	for _, r := range c.rules {
		b = r.appendTo(b)
	}
	return string(b)
}

func (r *rule) appendTo(b []byte) []byte {
	b = append(b, r.domain...)
	b = append(b, '.')
	b = append(b, r.key...)
	b = append(b, ": unit="...)
	b = append(b, r.shown.Unit.String()...)
	b = append(b, " requests_per_unit="...)
	b = strconv.AppendUint(b, uint64(r.shown.RequestsPerUnit), 10)
	if r.shown.Multiplier > 0 {
		b = append(b, " unit_multiplier="...)
		b = strconv.AppendUint(b, uint64(r.shown.Multiplier), 10)
	}
	b = append(b, ", shadow_mode: "...)
	b = strconv.AppendBool(b, r.shadow)
	b = append(b, ", quota_mode: "...)
	b = strconv.AppendBool(b, r.quota)
	if r.window == 0 && !r.unlimited {
		text := r.limit.String() // name=text
		b = append(b, ", limit: "...)
		b = append(b, text[strings.IndexByte(text, '=')+1:]...)
	}
	return append(b, '\n')
}
