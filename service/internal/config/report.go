package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/service/internal/envoy"
	"github.com/headgate/headgate/service/internal/rules"
)

// Check reads files as [Load] does, and returns what they say in text, one line for each file,
// rule, override, limit of a domain and warning.
func Check(paths []string, o Options) (string, error) {
	c, err := Load(paths, o)
	if err != nil {
		return "", err
	}
	domains, err := envoy.NewConfig(c.Domains, o.MergeDomains)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range c.Files {
		fmt.Fprintf(&b, "file %s\n", name)
	}
	for i := range c.Rules {
		writeRule(&b, &c.Rules[i])
	}
	for _, o := range c.Overrides {
		writeOverride(&b, &o)
	}
	for line := range strings.Lines(domains.String()) {
		fmt.Fprintf(&b, "domain %s", line)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	fmt.Fprintf(&b, "valid: %s, %s, %s, %s, %s\n",
		count(len(c.Files), "file"), count(len(c.Rules), "rule"),
		count(len(c.Overrides), "override"), count(domains.Domains(), "domain"),
		count(len(c.Warnings), "warning"))
	return b.String(), nil
}

func writeRule(b *strings.Builder, r *rules.Rule) {
	fmt.Fprintf(b, "rule %s:", r.Name)
	for i, l := range r.Limits {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, " %s", l.Named(""))
	}
	if r.Permits > 0 {
		fmt.Fprintf(b, " %s", count(int(r.Permits), "permit"))
	}
	parts := make([]string, len(r.Key))
	for i, p := range r.Key {
		parts[i] = p.String()
	}
	if len(parts) == 0 {
		b.WriteString(" for all together")
	} else {
		fmt.Fprintf(b, " for each %s", strings.Join(parts, ", "))
	}
	if m := matched(&r.Match); m != "" {
		fmt.Fprintf(b, " of %s", m)
	}
	if cost := r.Cost.String(); cost != "1" {
		fmt.Fprintf(b, ", cost %s", cost)
	}
	if r.Mode != rules.Enforce {
		fmt.Fprintf(b, ", %s", r.Mode)
	}
	b.WriteByte('\n')
}

func matched(m *rules.Match) string {
	var all []string
	if len(m.Methods) > 0 {
		all = append(all, strings.Join(m.Methods, " or "))
	}
	if len(m.Hosts) > 0 {
		all = append(all, strings.Join(m.Hosts, " or "))
	}
	if m.Path != "" {
		all = append(all, m.Path)
	}
	return strings.Join(all, " ")
}

func writeOverride(b *strings.Builder, o *rules.Override) {
	fmt.Fprintf(b, "override of %s for %s:", o.Rule, o.Key)
	if o.Ban {
		b.WriteString(" ban")
	}
	for i, l := range o.Limits {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, " %s", l.Named(""))
	}
	if !o.Until.IsZero() {
		fmt.Fprintf(b, " until %s", o.Until.UTC().Format("2006-01-02T15:04:05Z"))
	}
	b.WriteByte('\n')
}

// count returns "1 file" or "2 files".
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
