package environment

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variables reads one variable at a time, and collects the errors.
type variables struct {
	lookup func(string) (string, bool)
	errs   []error
}

func (v *variables) failf(format string, a ...any) {
	v.errs = append(v.errs, fmt.Errorf(format, a...))
}

// text returns the value of a variable. An empty one counts as not set.
func (v *variables) text(name, value string) string {
	if text, ok := v.lookup(name); ok && text != "" {
		return text
	}
	return value
}

// wrong records that a variable has another value than it may have.
func (v *variables) wrong(name, want string) {
	text, _ := v.lookup(name)
	v.failf("%s is %q; want %s", name, text, want)
}

func (v *variables) flag(name string, value bool) bool {
	b, err := strconv.ParseBool(v.text(name, strconv.FormatBool(value)))
	if err != nil {
		v.wrong(name, "true or false")
	}
	return b
}

func (v *variables) number(name string, value int) int {
	n, err := strconv.Atoi(v.text(name, strconv.Itoa(value)))
	if err != nil || n < 0 {
		v.wrong(name, "a whole number, 0 or more")
	}
	return n
}

func (v *variables) ratio(name string, value float64) float64 {
	f, err := strconv.ParseFloat(v.text(name, fmt.Sprint(value)), 64)
	if err != nil || !(f >= 0 && f <= 1) { // NaN included
		v.wrong(name, "a number from 0 to 1, such as 0.8")
	}
	return f
}

func (v *variables) duration(name string, value time.Duration) time.Duration {
	d, err := time.ParseDuration(v.text(name, value.String()))
	if err != nil || d < 0 {
		v.wrong(name, "a time with its unit, such as 10s")
	}
	return d
}

func (v *variables) oneOf(name, value string, all ...string) string {
	text := v.text(name, value)
	i := slices.IndexFunc(all, func(s string) bool { return strings.EqualFold(s, text) })
	if i < 0 {
		v.wrong(name, strings.Join(all, " or "))
		return value
	}
	return all[i]
}

// level reads the levels of logrus, which envoyproxy/ratelimit logs with.
func (v *variables) level(name string, value slog.Level) slog.Level {
	switch strings.ToLower(v.text(name, "")) {
	case "":
		return value
	case "trace", "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warn", "warning":
		return slog.LevelWarn
	case "error", "fatal", "panic":
		return slog.LevelError
	}
	v.wrong(name, "debug, info, warn or error")
	return value
}

// pairs reads names and values with a separator between them, and commas between pairs.
func (v *variables) pairs(name, separator string) map[string]string {
	text := v.text(name, "")
	if text == "" {
		return nil
	}
	pairs := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, separator)
		if !ok || key == "" {
			v.wrong(name, "name"+separator+"value,name"+separator+"value")
			return nil
		}
		pairs[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return pairs
}

func (v *variables) listenAddress(name, value string) string {
	text := v.text(name, value)
	if _, _, err := net.SplitHostPort(text); err != nil {
		v.wrong(name, "an address such as :9090")
	}
	return text
}
