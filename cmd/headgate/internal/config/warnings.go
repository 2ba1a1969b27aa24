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

// warnMemory notes a quota that a restart gives again.
func (l *loader) warnMemory(limit headgate.Limit, at origin) {
	store := cmp.Or(l.store, l.config.Store, "memory:")
	if limit.Algorithm() == headgate.AlgorithmCalendarWindow &&
		strings.TrimSuffix(store, ":") == "memory" {
		l.warnAt(at.Place, at.field, fmt.Sprintf("limit %s loses its count when the server "+
			"restarts; want store: redis://HOST, and a Redis that keeps its data on disk",
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
	cookies := map[string]bool{} // the rules that count by one
	for _, r := range l.config.Rules {
		cookies[r.Name] = slices.ContainsFunc(r.Key, func(p rules.KeyPart) bool {
			return p.Source == "cookie"
		})
	}
	for _, o := range l.config.Overrides {
		if o.Ban && bansCookie(o.Key, keytext.Several) {
			cookies[o.Rule] = false
		}
	}
	for i, o := range l.config.Overrides {
		if at := l.overrides[i]; !o.Until.IsZero() && !o.Until.After(l.now) {
			l.warnAt(at.Place, at.field, fmt.Sprintf("%q has no effect: it ended at %s",
				o.Key, o.Until.Format(time.RFC3339)))
		} else if o.Ban && cookies[o.Rule] && bansCookie(o.Key, "") {
			l.warnAt(at.Place, at.field, fmt.Sprintf("a client avoids the ban of %q by a second "+
				"cookie of the name; want a ban of cookie:%s, too", o.Key, keytext.Several))
		}
	}
}

// bansCookie reports whether a ban of key is of the cookie value, or of any cookie without value.
func bansCookie(key, value string) bool {
	_, cookie, found := strings.Cut(key, "cookie:")
	cookie, _, _ = strings.Cut(cookie, "|")
	literal, _, pattern := strings.Cut(cookie, "*")
	return found && (value == "" || cookie == value || pattern && strings.HasPrefix(value, literal))
}
