package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/keytext"
	"github.com/headgate/headgate/internal/loopback"
)

// warn notes what is accepted and likely wrong.
func (l *loader) warn() {
	for i := range l.config.Rules {
		l.warnRule(&l.config.Rules[i], l.rules[i])
	}
	l.warnOverrides()
	if at, given := l.set["instances"]; given && l.set["when_store_fails"] != (Place{}) &&
		l.config.WhenStoreFails != Share {
		l.warnAt(at, "instances", "has no effect; want when_store_fails: share")
	}
	if at, given := l.set["listen.http"]; given && len(l.config.API.Tokens) == 0 &&
		l.config.Listen.HTTP != "off" && !loopback.IsHost(l.config.Listen.HTTP) {
		l.warnAt(at, "listen.http", "every host that can connect to "+l.config.Listen.HTTP+
			" can charge keys, and no host can change limits; want api.tokens, or "+
			"a loopback address")
	}
}

func (l *loader) warnRule(r *rules.Rule, at origin) {
	if path, found := strings.CutSuffix(r.Match.Path, "/"); found && path != "" &&
		!strings.HasPrefix(path, "re:") {
		l.warnAt(at.Place, at.field, fmt.Sprintf("path %q matches only %s itself; want %q for all "+
			"paths below it", r.Match.Path, path, path+"/*"))
	}
	if m := r.Match.Methods; r.Cost.Tokens != nil && len(m) > 0 && !slices.Contains(m, "GET") {
		l.warnAt(at.Place, at.field, "websockets, which begin with GET, do not match this rule: "+
			"their tokens are not counted; add GET, so that websockets are refused")
	}
	if len(r.Clear.Statuses) > 0 && !slices.ContainsFunc(r.Key, isIdentity) {
		l.warnAt(at.Place, at.field, "a client clears the count of all who share its key by a "+
			"login of its own; want a part such as header:NAME in the key, or a second rule")
	}
	for i, limit := range r.Limits {
		if slices.ContainsFunc(r.Limits[:i], func(l headgate.Limit) bool {
			return l.Named("") == limit.Named("")
		}) {
			l.warnAt(at.Place, at.field, fmt.Sprintf(
				"limit %s is given twice: each request is charged twice", limit.Named("")))
		}
		l.warnMemory(limit, at)
		if r.Cost.Fixed > limit.Capacity() {
			l.warnAt(at.Place, at.field, fmt.Sprintf(
				"a cost of %d never fits limit %s: every request is denied",
				r.Cost.Fixed, limit.Named("")))
		}
		if r.Cost.IsLate() && r.Cost.Known() > limit.Capacity() {
			l.warnAt(at.Place, at.field, fmt.Sprintf(
				"an estimate of %d does not fit limit %s: each request takes all of the limit",
				r.Cost.Known(), limit.Named("")))
		}
		l.warnHeadroom(r, at, max(r.Cost.Fixed, 1), limit.Capacity(), limit.Named("").String())
	}
	if r.Permits > 0 {
		l.warnHeadroom(r, at, 1, r.Permits, count(int(r.Permits), "permit"))
	}
}

// isIdentity reports whether p is what a client says of itself.
func isIdentity(p rules.KeyPart) bool {
	return p.Source == "header" || p.Source == "cookie" || p.Source == "query"
}

// warnMemory notes a quota that a restart gives again.
func (l *loader) warnMemory(limit headgate.Limit, at origin) {
	store := cmp.Or(l.store, l.config.Store, "memory:")
	if limit.Algorithm() == headgate.AlgorithmCalendarWindow &&
		strings.TrimSuffix(store, ":") == "memory" {
		l.warnAt(at.Place, at.field, fmt.Sprintf("limit %s loses its count when the server "+
			"restarts; want store: redis://HOST, and a Redis that keeps its data on disk, "+
			"or store: memory:?file=PATH",
			limit.Named("")))
	}
}

// warnHeadroom notes classes that leave so much of a limit that a request never fits.
func (l *loader) warnHeadroom(r *rules.Rule, at origin, cost, capacity int64, limit string) {
	for _, c := range r.Headroom.Classes {
		if left := c.Of(capacity); cost <= capacity && cost+left > capacity {
			l.warnAt(at.Place, at.field, fmt.Sprintf("class %s must leave %d of %s, so a cost of "+
				"%d never fits: each request of the class is denied", c.Name, left, limit, cost))
		}
	}
}

// warnOverrides notes overrides that have ended, and bans that clients avoid.
func (l *loader) warnOverrides() {
	for i, o := range l.config.Overrides {
		if at := l.overrides[i]; !o.Until.IsZero() && !o.Until.After(l.now) {
			l.warnAt(at.Place, at.field, fmt.Sprintf("%q has no effect: it ended at %s",
				o.Key, o.Until.Format(time.RFC3339)))
		} else if o.Ban {
			l.warnSecondValue("cookie", &o, at)
			l.warnSecondValue("query", &o, at)
		}
	}
}

// warnSecondValue notes a ban that a client avoids because it can send several values.
func (l *loader) warnSecondValue(source string, ban *rules.Override, at origin) {
	counts := slices.ContainsFunc(l.config.Rules, func(r rules.Rule) bool {
		return r.Name == ban.Rule && slices.ContainsFunc(r.Key, func(p rules.KeyPart) bool {
			return p.Source == source
		})
	})
	bans := func(o rules.Override) bool {
		return o.Rule == ban.Rule && o.Ban && bansValue(source, o.Key, keytext.Several)
	}
	if counts && bansValue(source, ban.Key, "") && !slices.ContainsFunc(l.config.Overrides, bans) {
		l.warnAt(at.Place, at.field, fmt.Sprintf("a client avoids the ban of %q by a second value "+
			"of the name; want a ban of %s:%s, too", ban.Key, source, keytext.Several))
	}
}

// bansValue reports whether a ban of key is of the value of a cookie or a parameter, or of any
// without value.
func bansValue(source, key, value string) bool {
	_, text, found := strings.Cut(key, source+":")
	text, _, _ = strings.Cut(text, "|")
	literal, _, pattern := strings.Cut(text, "*")
	return found && (value == "" || text == value || pattern && strings.HasPrefix(value, literal))
}
