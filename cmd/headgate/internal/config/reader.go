package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/cmd/headgate/internal/spelling"
	"github.com/headgate/headgate/cmd/headgate/internal/yamlnode"
)

// Place is a line of a file.
type Place = yamlnode.Place

// origin is where a value was given.
type origin struct {
	Place

	field string
	node  *yaml.Node
}

// loader collects what the files say, and what is wrong with them.
type loader struct {
	env    func(string) (string, bool)
	now    time.Time
	config *Config
	faults []error

	mergeDomains bool
	noProxy      bool
	store        string // of a flag

	set    map[string]Place // the scalars that were given, by field
	named  map[string]Place // the rules, by name
	limits map[string]Place // the names of limits

	rules     []origin // of config.Rules
	overrides []origin // of config.Overrides
}

func (l *loader) fault(at Place, field, text string) {
	if field != "" {
		text = field + ": " + text
	}
	l.faults = append(l.faults, &yamlnode.Fault{Place: at, Text: text})
}

func (l *loader) warnAt(at Place, field, text string) {
	if field != "" {
		text = field + ": " + text
	}
	l.config.Warnings = append(l.config.Warnings, at.String()+": "+text)
}

// reader reads the values of one file.
type reader struct {
	*loader
	file string
}

func (r *reader) at(n *yaml.Node) Place { return Place{File: r.file, Line: n.Line} }

func (r *reader) faultf(n *yaml.Node, field, format string, values ...any) {
	r.fault(r.at(n), field, fmt.Sprintf(format, values...))
}

// field is an accepted field of a mapping.
type field struct {
	name string
	read func(n *yaml.Node, path string)
}

// mapping reads the fields of n, which is at path.
func (r *reader) mapping(n *yaml.Node, path string, accepted ...field) {
	if n.Kind != yaml.MappingNode {
		r.faultf(n, path, "is %s; want a mapping with %s", kind(n), list(accepted))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.faultf(key, path, "the name of a field is %s; want %s", kind(key), list(accepted))
			continue
		}
		at := join(path, key.Value)
		if first, twice := lines[key.Value]; twice {
			r.faultf(key, at, "is given twice, first in line %d; want it once", first)
			continue
		}
		lines[key.Value] = key.Line
		r.field(n, key, value, at, accepted)
	}
}

// field reads a field of the mapping n. A value under a wrong name is read as that of the name that
// was meant, so that its faults are reported, too. A name with another first letter, such as host
// for cost, was hardly meant.
func (r *reader) field(n, key, value *yaml.Node, path string, accepted []field) {
	for _, f := range accepted {
		if f.name != key.Value {
			continue
		}
		if value.Tag == "!!null" {
			r.faultf(key, path, "has no value; want one, or no field")
			return
		}
		f.read(value, path)
		return
	}
	text := "unknown field; want " + list(accepted)
	like := spelling.Like(key.Value, names(accepted))
	if len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	r.faultf(key, path, "%s", text)
	if len(like) == 1 && !has(n, like[0]) && strings.EqualFold(key.Value[:1], like[0][:1]) {
		key.Value = like[0]
		r.field(n, key, value, path, accepted)
	}
}

// into returns a field that stores in to what read returns.
func into[T any](name string, to *T, read func(n *yaml.Node, path string) T) field {
	return field{name, func(n *yaml.Node, path string) { *to = read(n, path) }}
}

// setting is like into, for a field that only one of the files may set.
func setting[T any](
	r *reader, name string, to *T, read func(n *yaml.Node, path string) T,
) field {
	return field{name, func(n *yaml.Node, path string) {
		once := r.once(n, path)
		before := len(r.faults)
		if v := read(n, path); once && len(r.faults) == before {
			*to = v
		}
	}}
}

// list calls item for each entry of n.
func (r *reader) list(n *yaml.Node, path string, item func(n *yaml.Node, path string)) {
	if n.Kind != yaml.SequenceNode {
		r.faultf(n, path, "is %s; want a list", kind(n))
		return
	}
	for i, entry := range n.Content {
		item(entry, path+"["+strconv.Itoa(i)+"]")
	}
}

// texts reads a text, or a list of texts. want says what a text is for.
func (r *reader) texts(
	n *yaml.Node, path, want string, item func(text string, n *yaml.Node, path string),
) {
	one := func(n *yaml.Node, path string) {
		if text := r.textFor(n, path, want); text != "" {
			item(text, n, path)
		}
	}
	if n.Kind != yaml.SequenceNode {
		one(n, path)
		return
	}
	if len(n.Content) == 0 {
		r.faultf(n, path, "is empty; want at least one entry, or no field")
	}
	r.list(n, path, one)
}

// text reads a text. It refuses ${, which only connection replaces. After a fault, it returns "".
func (r *reader) text(n *yaml.Node, path string) string { return r.textFor(n, path, "text") }

func (r *reader) textFor(n *yaml.Node, path, want string) string {
	if !r.isText(n, path, want) {
		return ""
	}
	if strings.Contains(n.Value, "${") {
		r.faultf(n, path, "%q: variables are replaced only in store, key_secret, listen, "+
			"tls and api.tokens; "+
			"want the value itself", n.Value)
		return ""
	}
	return n.Value
}

func (r *reader) isText(n *yaml.Node, path, want string) bool {
	// A time such as 2027-01-01T00:00:00Z has a tag of its own.
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!timestamp" {
		r.faultf(n, path, "is %s; want %s", kind(n), want)
		return false
	}
	if n.Value == "" {
		r.faultf(n, path, "is empty; want %s", want)
		return false
	}
	return true
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*\})?`)

// connection reads a text, and replaces ${VAR} by the value of the environment variable VAR.
// After a fault, it returns "".
func (r *reader) connection(n *yaml.Node, path string) string {
	if !r.isText(n, path, "text") {
		return ""
	}
	before := len(r.faults)
	text := reference.ReplaceAllStringFunc(n.Value, func(variable string) string {
		name := strings.Trim(variable, "${}")
		value, _ := r.env(name)
		switch {
		case len(r.faults) > before: // the first is reported
		case name == "":
			r.faultf(n, path,
				"${ does not begin a variable; want ${NAME}, of letters, digits and _")
		case value == "":
			r.faultf(n, path, "${%s} is unset or empty; want a value in the environment", name)
		}
		return value
	})
	if len(r.faults) > before {
		return ""
	}
	return text
}

func (r *reader) boolean(n *yaml.Node, path string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.faultf(n, path, "is %s; want true or false", kind(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// wholeNumber reads a whole number from least to most.
func wholeNumber[T int | int64](r *reader, least, most T) func(n *yaml.Node, path string) T {
	return func(n *yaml.Node, path string) T {
		v, err := strconv.ParseInt(n.Value, 10, 64)
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil ||
			v < int64(least) || v > int64(most) {
			r.faultf(n, path, "is %s; want a whole number from %d to %d", kind(n), least, most)
			return 0
		}
		return T(v)
	}
}

// duration reads a time from least to most. Messages name it what, with like as an example.
func (r *reader) duration(what, least, most, like string) func(*yaml.Node, string) time.Duration {
	parse := func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		from, _ := time.ParseDuration(least)
		to, _ := time.ParseDuration(most)
		if err != nil || d < from || d > to {
			return 0, fmt.Errorf("%q is not %s; want a time from %s to %s, such as %s",
				text, what, least, most, like)
		}
		return d, nil
	}
	return func(n *yaml.Node, path string) time.Duration {
		if !r.isText(n, path, "a time such as "+like) {
			return 0
		}
		return parsed(r, parse)(n, path)
	}
}

// parsed reads a text, and converts it with parse.
func parsed[T any](
	r *reader, parse func(string) (T, error),
) func(n *yaml.Node, path string) T {
	return func(n *yaml.Node, path string) (value T) {
		if text := r.text(n, path); text != "" {
			var err error
			if value, err = parse(text); err != nil {
				r.faultf(n, path, "%v", err)
			}
		}
		return value
	}
}

// each reads a text, or a list of texts, and converts each one with parse.
func each[T any](
	r *reader, parse func(string) (T, error),
) func(n *yaml.Node, path string) []T {
	return func(n *yaml.Node, path string) (values []T) {
		r.texts(n, path, "text", func(_ string, n *yaml.Node, path string) {
			before := len(r.faults)
			if v := parsed(r, parse)(n, path); len(r.faults) == before {
				values = append(values, v)
			}
		})
		return values
	}
}

// once reports whether the field at path is given for the first time in all files.
func (r *reader) once(n *yaml.Node, path string) bool {
	if first, twice := r.set[path]; twice {
		r.faultf(n, path, "is also given at %s; want it in one file", first)
		return false
	}
	r.set[path] = r.at(n)
	return true
}

// require reports a fault if n is a mapping without the field name.
func (r *reader) require(n *yaml.Node, path, name, want string) {
	if n.Kind == yaml.MappingNode && !has(n, name) {
		r.faultf(n, join(path, name), "is missing; want %s", want)
	}
}

// kind says what n is, for an error.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!str", "!!timestamp":
		return strconv.Quote(n.Value)
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return "the boolean " + n.Value
	}
	return "of the type " + n.Tag
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func names(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	return all
}

func list(fields []field) string { return strings.Join(names(fields), ", ") }
