package envoy

import (
	"math"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// answer fills resp by the decisions of w.
func (l *Limiter) answer(w *work, req *Request, resp *Response) {
	over, quotas, overQuotas := 0, 0, 0
	wait, soonest := time.Duration(0), headgate.Never // until all limits, and until a quota, grant
	tightest, least := -1, uint32(math.MaxUint32)
	for i := range w.items {
		it := &w.items[i]
		s := l.status(it)
		resp.Statuses = append(resp.Statuses, s)
		if s.HasLimit && s.Remaining < least {
			tightest, least = i, s.Remaining
		}
		if it.unlimited {
			continue
		}
		quota := l.options.QuotaMode || it.rule != nil && it.rule.quota
		if quota {
			quotas++
		}
		switch {
		case s.Code != OverLimit:
		case quota:
			overQuotas++
			soonest = min(soonest, it.wait(s.Reset))
		default:
			over++
			wait = max(wait, it.wait(s.Reset))
			tightest, least = i, 0
		}
	}
	resp.Code = OK
	if quotas > 0 && overQuotas == quotas { // quotas deny only together
		wait = max(wait, soonest)
		resp.Code = OverLimit
	}
	if over > 0 {
		resp.Code = OverLimit
	}
	if l.options.LimitHeader != "" && tightest >= 0 {
		l.headers(&resp.Statuses[tightest], resp)
	}
	if l.options.RetryAfter && resp.Code == OverLimit && wait != headgate.Never {
		resp.Headers = append(resp.Headers, Header{"Retry-After", seconds(wait)})
	}
	if resp.Code == OverLimit && l.options.ShadowMode {
		resp.Code = OK
		l.stats.GlobalShadowMode.Add(1)
	}
	if l.options.DynamicMetadata {
		resp.Metadata = l.describe(w, req, resp.Statuses)
	}
}

func (l *Limiter) headers(s *Status, resp *Response) {
	text := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	resp.Headers = append(resp.Headers,
		Header{l.options.LimitHeader, text(s.Limit.RequestsPerUnit)},
		Header{l.options.RemainingHeader, text(s.Remaining)},
		Header{l.options.ResetHeader, seconds(s.Reset)})
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// wait returns reset, or [headgate.Never] if the hits of it do not fit into an unused limit.
func (it *item) wait(reset time.Duration) time.Duration {
	if it.rule.most == 0 || it.hits > uint64(it.rule.most) && !it.overdraws {
		return headgate.Never
	}
	return reset
}

// status is the answer for it, which it also counts.
func (l *Limiter) status(it *item) Status {
	switch {
	case it.unlimited:
		return Status{Code: OK, Remaining: math.MaxUint32}
	case it.rule == nil:
		return Status{Code: OK}
	}
	u := it.usage()
	s := Status{Code: OK, HasLimit: true, Limit: it.rule.shown, Reset: it.reset(u.over)}
	if u.over {
		s.Code = OverLimit
	} else {
		s.Remaining = uint32(min(max(it.decision.Remaining-it.above(), 0), math.MaxUint32))
	}
	if it.cost >= 0 {
		l.count(it, u)
	}
	if u.over && l.options.OverLimit != nil {
		l.options.OverLimit(Denial{it.counters, it.key, it.hits, it.rule.shadow})
	}
	if u.over && it.rule.shadow {
		s.Code = OK
	}
	l.remember(it, u.over)
	return s
}

// usage is what a counter held before and after the hits of an item, had they been charged.
type usage struct {
	limit, before, after uint64
	over                 bool
}

func (it *item) usage() usage {
	d := it.decision
	limit, used := it.rule.most, int64(0)
	if d.Limit.Capacity() > 0 {
		limit = d.Limit.Capacity() - it.above() // a share, while a fallback decides
	}
	if asked := d.Limit != (headgate.Limit{}); asked {
		used = max(limit+it.above()-d.Remaining, 0)
	}
	denied := !d.Allowed() && (!it.overdraws || !it.force) || it.rule.most == 0 && it.cost > 0
	u := usage{limit: uint64(limit), over: it.cost >= 0 && denied}
	u.before, u.after = uint64(used), uint64(used)
	switch {
	case it.charged && it.cost > 0 && uint64(used) >= it.hits:
		u.before = uint64(used) - it.hits
	case u.over:
		u.after = uint64(used) + it.hits
	}
	return u
}

// above returns how much larger the limit in the store is than the limit of the rule.
func (it *item) above() int64 {
	if it.peek || it.rule.most == 0 {
		return 1
	}
	return 0
}

// count counts the hits of it: what is above the limit, and what is near it. That part of the
// hits counts which lies in the range.
func (l *Limiter) count(it *item, u usage) {
	c := it.counters
	near := uint64(math.Floor(float64(float32(u.limit) * l.options.NearLimitRatio)))
	beyond := it.hits // of the hits, those above the limit
	switch {
	case !u.over:
		excess := u.after - min(u.after, u.limit) // of hits of which only a part fitted
		if within := u.after - excess; within > max(near, u.before) {
			c.NearLimit.Add(within - max(near, u.before))
		}
		c.WithinLimit.Add(it.hits - excess)
		c.OverLimit.Add(excess)
		return
	case it.cached:
		c.OverLimitWithLocalCache.Add(it.hits)
	case u.before < u.limit && u.after > u.limit:
		beyond = u.after - u.limit
		c.NearLimit.Add(u.limit - max(min(near, u.limit), u.before))
	}
	c.OverLimit.Add(beyond)
	if it.rule.shadow {
		c.ShadowMode.Add(beyond)
	}
}

// reset is the time until the limit of it is reset, in whole seconds. For a window it is the time
// to its end, by the clock of the store if that was asked.
func (it *item) reset(over bool) time.Duration {
	d := it.decision
	wait := d.ResetAfter
	switch {
	case it.rule.window > 0 && wait == 0:
		now := time.Now().Unix()
		return time.Duration(it.rule.window-now%it.rule.window) * time.Second
	case it.rule.window == 0 && over && d.RetryAfter != headgate.Never:
		wait = d.RetryAfter
	}
	return (wait + time.Second - 1).Truncate(time.Second)
}

// remember keeps in the local cache that it is over its limit until the window ends.
func (l *Limiter) remember(it *item, over bool) {
	d := it.decision
	if l.cache == nil || !over || it.cached || it.rule.window == 0 || d.Remaining > 0 ||
		d.Degraded() {
		return
	}
	until := time.Now().Add(d.ResetAfter)
	if d.ResetAfter == 0 { // the store was not asked
		until = time.Unix(until.Unix()/it.rule.window*it.rule.window+it.rule.window, 0)
	}
	l.cache.deny(it.key, it.rule.window, it.rule.most, until)
}
