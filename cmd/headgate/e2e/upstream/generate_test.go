package upstream

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// random makes configurations whose keys and values often meet: short, with underscores where
// gluing is ambiguous, and with * at their end, where upstream's module knows it.
type random struct {
	*rand.Rand

	small bool // limits are such that a few requests reach them, and have no names
}

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

func (r random) config(domain string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %s\n", domain)
	r.descriptors(&b, "", 0)
	return b.String()
}

func (r random) descriptors(b *strings.Builder, indent string, depth int) {
	fmt.Fprintf(b, "%sdescriptors:\n", indent)
	used := map[string]bool{}
	for range 1 + r.IntN(4) {
		key, value := r.key(), r.value()
		if strings.HasSuffix(key, "*") {
			value = ""
		}
		name := key
		if value != "" {
			name += "_" + value
		}
		if used[name] && r.IntN(50) > 0 {
			continue
		}
		used[name] = true
		fmt.Fprintf(b, "%s  - key: \"%s\"\n", indent, key)
		if value != "" {
			fmt.Fprintf(b, "%s    value: \"%s\"\n", indent, value)
		}
		share := 8
		if strings.HasSuffix(name, "*") {
			share = 2
		} else if r.IntN(20) > 0 {
			share = 0
		}
		r.flag(b, indent, "share_threshold", share)
		r.flag(b, indent, "detailed_metric", 4)
		r.flag(b, indent, "value_to_metric", 3)
		r.flag(b, indent, "shadow_mode", 4)
		r.flag(b, indent, "quota_mode", 4)
		if r.IntN(4) > 0 {
			r.limit(b, indent)
		}
		if depth < 2 && r.IntN(2) == 0 {
			r.descriptors(b, indent+"    ", depth+1)
		}
	}
}

func (r random) flag(b *strings.Builder, indent, name string, oneIn int) {
	if oneIn > 0 && r.IntN(oneIn) == 0 {
		fmt.Fprintf(b, "%s    %s: %s\n", indent, name, pick(r, "true", "true", "yes", "false", "on"))
	}
}

func (r random) limit(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s    rate_limit:\n", indent)
	if r.IntN(8) == 0 {
		fmt.Fprintf(b, "%s      unlimited: true\n", indent)
	} else {
		unit := pick(r, "second", "Minute", "HOUR", "day", "week", "month", "year")
		fmt.Fprintf(b, "%s      unit: %s\n", indent, unit)
		most := 1000
		if r.small {
			most = 12
		}
		fmt.Fprintf(b, "%s      requests_per_unit: %d\n", indent, r.IntN(most))
	}
	if r.small {
		return
	}
	if r.IntN(4) == 0 {
		fmt.Fprintf(b, "%s      name: %s\n", indent, pick(r, "n", "m"))
	}
	if r.IntN(6) == 0 {
		fmt.Fprintf(b, "%s      replaces: [{name: %s}]\n", indent, pick(r, "n", "m", "o", "p"))
	}
}

func (r random) key() string { return pick(r, "a", "b", "a_b", "ab", "a*", "*", "a_") }

func (r random) value() string {
	return pick(r, "", "", "b", "c", "b_c", "*", "b*", "b_*", "1.2.3.4", "a=b|c")
}

func (r random) descriptor() *envoy.Descriptor {
	d := &envoy.Descriptor{}
	for range 1 + r.IntN(3) {
		d.Entries = append(d.Entries, envoy.Entry{
			Key:   pick(r, "a", "a", "b", "a_b", "ab", "c", "a*"),
			Value: pick(r, "", "b", "c", "b_c", "bc", "*", "b*", "d", "1.2.3.4", "a=b|c", `\`),
		})
	}
	return d
}

// mutate changes one word, one line or one byte of text.
func (r random) mutate(text string) string {
	lines := strings.SplitAfter(text, "\n")
	i := r.IntN(len(lines))
	switch r.IntN(6) {
	case 0: // another value
		key, _, _ := strings.Cut(lines[i], ":")
		lines[i] = key + ": " + pick(r, words...) + "\n"
	case 1: // another key
		key, value, ok := strings.Cut(lines[i], ":")
		if ok {
			from := strings.TrimLeft(key, " -")
			lines[i] = strings.TrimSuffix(key, from) + pick(r, names...) + ":" + value
		}
	case 2:
		lines[i] = ""
	case 3:
		lines[i] += lines[r.IntN(len(lines))]
	case 4:
		lines[i] = strings.Replace(lines[i], "  ", "", 1)
	default:
		at := r.IntN(len(text) + 1)
		return text[:at] + pick(r, words...) + text[at:]
	}
	return strings.Join(lines, "")
}

var words = []string{
	"", "~", "null", "0", "-1", "7", "4294967295", "4294967296", "9223372036854775808", "0.5",
	"1e3", "0x10", "010", "0b11", "0o17", "1_000", "yes", "no", "y", "on", "true", "'true'", `"5"`,
	"second", "hour", "UNKNOWN", "foo", "2001-01-01", "[]", "{}", "[a]", "[{key: a}]",
	"[{name: n}]", "[~]", "{unit: day}", "{name: x}", "&x a", "*x", "!!str 5", "!!int x",
	"!!float 5", "!!binary aGk=", ".inf", ".nan", "|", ">-", "#", ":", "-", `"`, "'", "\t", "? x",
	"<<", "a: b", "\x01", "ä", "!foo bar",
}

var names = []string{
	"key", "value", "rate_limit", "unit", "requests_per_unit", "unlimited", "name", "replaces",
	"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold",
	"descriptors", "domain", "foo", "1", "0.25", "yes", "~", "Key", "'key'", "<<", "[a]", "{a: b}",
	"2001-01-01", "!!str key",
}
