package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/service/internal/rules"
)

// warn notes what is accepted and likely wrong.
func (l *loader) warn() {
	for i := range l.config.Rules {
		l.warnRule(&l.config.Rules[i], l.rules[i])
	}
	for i := range l.config.Overrides {
		l.warnOverride(i)
	}
	if at, given := l.set["listen.http"]; given && len(l.config.API.Tokens) == 0 &&
		!isLoopback(l.config.Listen.HTTP) {
		l.warnAt(at, "listen.http", "anyone who reaches "+l.config.Listen.HTTP+
			" can charge and reset keys; want api.tokens, or an address of this machine alone")
	}
}

// isLoopback reports whether an address of a listener is reached from this machine alone.
func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

func (l *loader) warnRule(r *rules.Rule, at origin) {
	for i, loose := range r.Limits {
		for j, strict := range r.Limits {
			if i != j && neverFirst(loose, strict) && (i > j || !neverFirst(strict, loose)) {
				l.warnAt(at.place, at.field, fmt.Sprintf("limit %s never denies what %s grants",
					loose.Named(""), strict.Named("")))
				break
			}
		}
		if r.Cost.Fixed > loose.Capacity() {
			l.warnAt(at.place, at.field, fmt.Sprintf(
				"a cost of %d never fits limit %s: every request is denied",
				r.Cost.Fixed, loose.Named("")))
		}
	}
}

// neverFirst reports whether all that strict grants is granted by loose, too. It knows only limits
// of one algorithm.
func neverFirst(loose, strict headgate.Limit) bool {
	if loose.Algorithm() != strict.Algorithm() || loose.Capacity() < strict.Capacity() {
		return false
	}
	if loose.Algorithm() != headgate.AlgorithmTokenBucket {
		return loose.Period() == strict.Period()
	}
	// Rates as fractions of integers that a limit keeps below 2^53; in float64, a nearly equal
	// rate may be missed, which is only a warning less.
	rate, unit := loose.Rate()
	strictRate, strictUnit := strict.Rate()
	return float64(rate)/float64(unit) >= float64(strictRate)/float64(strictUnit)
}

// warnOverride notes an override that an earlier one hides: the first that matches is used.
func (l *loader) warnOverride(i int) {
	o := &l.config.Overrides[i]
	for j := range l.config.Overrides[:i] {
		first := &l.config.Overrides[j]
		if first.Rule == o.Rule && first.Until.IsZero() && covers(first.Key, o.Key) {
			at := l.overrides[i]
			l.warnAt(at.place, at.field, fmt.Sprintf(
				"%q is never used: %q at %s matches first", o.Key, first.Key, l.overrides[j].place))
			return
		}
	}
}

// covers reports whether pattern, where * stands for any text, matches all that text matches.
func covers(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, last)
}
