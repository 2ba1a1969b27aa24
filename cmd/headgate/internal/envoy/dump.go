package envoy

import (
	"fmt"
	"strings"
)

// String lists the limits, one on a line, as /rlconfig prints them.
func (c *Config) String() string {
	var b strings.Builder
	for _, r := range c.rules {
		fmt.Fprintf(&b, "%s.%s: unit=%s requests_per_unit=%d",
			r.domain, r.key, r.shown.Unit, r.shown.RequestsPerUnit)
		if r.shown.Multiplier > 0 {
			fmt.Fprintf(&b, " unit_multiplier=%d", r.shown.Multiplier)
		}
		fmt.Fprintf(&b, ", shadow_mode: %t, quota_mode: %t", r.shadow, r.quota)
		if r.window == 0 && !r.unlimited {
			_, text, _ := strings.Cut(r.limit.String(), "=") // name=text
			fmt.Fprintf(&b, ", limit: %s", text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
