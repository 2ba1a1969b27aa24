package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Report returns what the files say in text, one line for each file, rule, override, limit of a
// domain and warning.
func (c *Config) Report() string {
	var b strings.Builder
	for _, name := range c.Files {
		b.WriteString(line("file " + name))
	}
	if c.KeySecret != "" {
		b.WriteString("key_secret: Redis holds hashes instead of keys\n")
	}
	if c.StoreTimeout > 0 {
		fmt.Fprintf(&b, "store_timeout: %s; gateways and clients need longer timeouts\n",
			c.StoreTimeout)
	}
	b.WriteString(c.RuleLines())
	for line := range strings.Lines(c.domains.String()) {
		fmt.Fprintf(&b, "domain %s", line)
	}
	for _, w := range c.Warnings {
		b.WriteString(line("warning: " + w))
	}
	fmt.Fprintf(&b, "valid: %s, %s, %s, %s, %s\n",
		count(len(c.Files), "file"), count(len(c.Rules), "rule"),
		count(len(c.Overrides), "override"), count(c.domains.Domains(), "domain"),
		count(len(c.Warnings), "warning"))
	return b.String()
}

// RuleLines returns one line for each rule and override. None has a secret.
func (c *Config) RuleLines() string {
	var b strings.Builder
	for i := range c.Rules {
		b.WriteString(line(ruleText(&c.Rules[i])))
	}
	for _, o := range c.Overrides {
		b.WriteString(line(overrideText(&o)))
	}
	return b.String()
}

// line returns text as one line: names and expressions may have several.
func line(text string) string { return strings.ReplaceAll(text, "\n", `\n`) + "\n" }

func ruleText(r *rules.Rule) string {
	b := new(strings.Builder)
	fmt.Fprintf(b, "rule %s: %s", r.Name, strings.Join(LimitTexts(r), ", "))
	if key := KeyText(r.Key); key == "" {
		b.WriteString(" without a key")
	} else {
		fmt.Fprintf(b, " for each %s", key)
	}
	for _, part := range []struct{ before, text, usual string }{
		{" of ", MatchText(&r.Match), ""},
		{", cost ", r.Cost.String(), "1"},
		{", exempt ", networksText(r.Exempt), ""},
		{", counts ", r.Count.String(), ""},
		{", cleared by ", r.Clear.String(), ""},
		{", headroom ", r.Headroom.String(), ""},
		{", ", HoldText(r), ""},
		{", ", r.Mode.String(), rules.Enforce.String()},
	} {
		if part.text != part.usual {
			b.WriteString(part.before + part.text)
		}
	}
	return b.String()
}

// KeyText returns the parts of a key as text; empty: there are none.
func KeyText(key []rules.KeyPart) string {
	parts := make([]string, len(key))
	for i, p := range key {
		parts[i] = p.String()
	}
	return strings.Join(parts, ", ")
}

// MatchText returns a match as text; empty: it matches everything.
func MatchText(m *rules.Match) string {
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
	if len(m.Clients) > 0 {
		all = append(all, "from "+networksText(m.Clients))
	}
	return strings.Join(all, " ")
}

func networksText(networks []netip.Prefix) string {
	texts := make([]string, len(networks))
	for i, p := range networks {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

func overrideText(o *rules.Override) string {
	bounds := rules.LimitTexts(o.Limits)
	if o.Ban {
		bounds = []string{"ban"}
	}
	text := fmt.Sprintf("override of %s for %s: %s", o.Rule, o.Key, strings.Join(bounds, ", "))
	if !o.Until.IsZero() {
		text += " until " + o.Until.UTC().Format("2006-01-02T15:04:05Z")
	}
	return text
}

// LimitTexts returns the limits of r, and its permits, as texts.
func LimitTexts(r *rules.Rule) []string {
	bounds := rules.LimitTexts(r.Limits)
	if r.Permits > 0 {
		bounds = append(bounds, count(int(r.Permits), "permit"))
	}
	return bounds
}

// HoldText returns how r holds requests, as text; empty: it does not.
func HoldText(r *rules.Rule) string {
	if r.MaxWait == 0 {
		return ""
	}
	most := cmp.Or(r.MaxWaiting, rules.DefaultMaxWaiting)
	return fmt.Sprintf("%d wait for at most %s", most, r.MaxWait)
}

// count returns "1 file" or "2 files".
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
