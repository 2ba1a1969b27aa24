package limittest

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// model is a store that decides by the definitions. It finds each wait by trying times.
type model struct {
	mu     sync.Mutex
	states map[stateKey]state
}

type stateKey struct {
	key, id   string
	algorithm headgate.Algorithm
	window    time.Duration
}

func newModel() *model { return &model{states: map[stateKey]state{}} }

func keyOf(key string, l headgate.Limit) stateKey {
	k := stateKey{key: key, id: l.ID(), algorithm: l.Algorithm()}
	if l.Refill() == 0 {
		k.window = l.Period()
	}
	return k
}

func (m *model) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if err := r.Validate(); err != nil {
		return headgate.Decision{}, err
	}
	var ds [1]headgate.Decision
	err := m.TakeAll(ctx, []headgate.Request{r}, ds[:])
	return ds[0], err
}

func (m *model) TakeAll(_ context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	if err := headgate.ValidateAll(rs, ds); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := make([]part, len(rs))
	for i := range rs {
		parts[i] = part{Request: &rs[i], state: m.states[keyOf(rs[i].Key, rs[i].Limit)]}
		parts[i].decide()
	}
	wait, granted := together(parts)
	for i := range parts {
		p := &parts[i]
		if p.Forced() {
			p.force()
			m.states[keyOf(p.Key, p.Limit)] = p.state
		} else if granted {
			p.settle(wait)
			m.states[keyOf(p.Key, p.Limit)] = p.state
		}
		ds[i] = p.decision()
	}
	return nil
}

func (m *model) Reset(_ context.Context, key string, l headgate.Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.states, keyOf(key, l))
	return nil
}

// part is one request of a group, and the state that it finds.
type part struct {
	*headgate.Request
	state state
	now   int64
	wait  int64 // microseconds until the request alone would be granted, or never
	over  bool  // charged although it does not fit
}

const never = math.MaxInt64

// held reports whether a start time that was booked is ahead.
func (p *part) held() bool { return p.state.booked && p.state.at > p.now }

// cancels reports whether p is a refund of a grant that it names by its start.
func (p *part) cancels() bool { return p.Cost < 0 && p.Start != nil && !p.Start.IsZero() }

// late reports whether the start that p names has come.
func (p *part) late() bool { return p.cancels() && p.Start.UnixMicro() <= p.now }

// refused reports whether p cannot be cancelled: it is ahead and not the last start, or, under a
// bucket, tokens were granted or refunded after it.
func (p *part) refused() bool {
	start := p.Start.UnixMicro()
	if p.late() {
		return p.Limit.Refill() > 0 && p.state.at > start
	}
	return p.state.at != start
}

// time is when p is decided: no time passes before the time of the state.
func (p *part) time() int64 { return max(p.now, p.state.at) }

// decide finds the wait of p alone.
func (p *part) decide() {
	p.now = p.At.UnixMicro()
	if p.At.IsZero() {
		p.now = time.Now().UnixMicro()
	}
	ask := p.Needs()
	switch {
	case p.Cost < 0:
		if p.cancels() && p.refused() {
			p.wait = never
		}
	case ask > p.Limit.Capacity():
		p.wait = never
	case !p.held() && p.state.left(p.Limit, p.time()) >= ask:
		p.wait = 0 // also if the clock stepped back
	default:
		p.wait = p.waitFor(ask)
	}
}

// waitFor finds the wait until ask fits. No start time can be booked that doubles do not
// count exactly, which ends in the year 2255.
func (p *part) waitFor(ask int64) int64 {
	start := first(p.time(), func(t int64) bool { return p.state.left(p.Limit, t) >= ask })
	wait := start - p.now
	booked := wait <= p.MaxWait.Microseconds() // a denial lengthens no log
	if books := p.held() || p.Cost > 0 && p.MaxWait > 0; books &&
		(start >= 1<<53 || booked && (p.tooLong(ask) || p.tooFar(start))) {
		return never
	}
	return wait
}

// tooLong reports whether a log would keep more than twice the most that it can grant.
func (p *part) tooLong(ask int64) bool {
	if p.Limit.Algorithm() != headgate.AlgorithmSlidingLog {
		return false
	}
	for _, g := range p.state.grants {
		if p.since()-g.at < p.Limit.Period().Microseconds() {
			ask += g.count
		}
	}
	return ask > 2*65535
}

// tooFar reports whether a start is after the next window of a calendar.
func (p *part) tooFar(start int64) bool {
	return p.Limit.Algorithm() == headgate.AlgorithmCalendarWindow &&
		start >= windowBound(p.Limit, p.now, 2)
}

// together is how long a group waits for its common start, and whether it is granted.
func together(parts []part) (wait int64, granted bool) {
	patience := int64(math.MaxInt64 - 1)
	for i := range parts {
		if p := &parts[i]; p.Forced() {
			continue
		} else if p.Cost > 0 {
			wait, patience = max(wait, p.wait), min(patience, p.MaxWait.Microseconds())
		} else if p.Cost < 0 && p.wait == never {
			wait = never
		}
	}
	return wait, wait <= patience
}

// settle charges p, one of a group that starts after wait.
func (p *part) settle(wait int64) {
	switch {
	case p.Cost > 0:
		at, since := max(p.time(), p.now+wait), p.since()
		late := p.held()
		p.state = p.state.charged(p.Limit, at, p.Cost)
		p.state.booked, p.state.late, p.state.since = wait > 0 && at == p.now+wait, late, since
		p.wait = wait
		if p.Start != nil && !p.Force {
			*p.Start = time.UnixMicro(p.now + wait)
		}
	case p.late() && p.settleLate():
	case p.Cost < 0 && p.held():
		p.giveBack()
	case p.Cost < 0:
		p.state = p.state.refunded(p.Limit, p.time(), p.tokens())
		if p.state.clean(p.Limit, p.time()) {
			p.state = state{}
		}
	}
}

// settleLate settles a refund of a window or a log, and reports false if it is like any other: that
// of a bucket, and that of a fixed or calendar window that is not over.
func (p *part) settleLate() bool {
	start := p.Start.UnixMicro()
	switch p.Limit.Algorithm() {
	case headgate.AlgorithmSlidingWindow, headgate.AlgorithmSlidingLog:
		p.state = p.state.refundedLate(p.Limit, start, p.tokens())
		if !p.held() && p.state.clean(p.Limit, p.time()) {
			p.state = state{}
		}
		return true
	case headgate.AlgorithmFixedWindow, headgate.AlgorithmCalendarWindow:
		return start < windowStart(p.Limit, p.time())
	default:
		return false
	}
}

// force charges p whether or not it fits, and finds its wait after that. While a start is ahead,
// that stays, and a cancel leaves time there.
func (p *part) force() {
	if p.wait == 0 {
		p.settle(0)
		return
	}
	at, held, since := p.time(), p.held(), p.since()
	p.state = p.state.forced(p.Limit, at, p.Cost)
	p.state.booked, p.state.late, p.state.since = held, held, since
	p.over = true
	if p.Cost <= p.Limit.Capacity() {
		p.wait = first(at, func(t int64) bool { return p.state.left(p.Limit, t) >= p.Cost }) - p.now
	}
}

// tokens is how many a refund gives back.
func (p *part) tokens() int64 { return -max(p.Cost, -math.MaxInt64) }

// giveBack is a refund while a start is ahead: that stays, except for a cancel.
func (p *part) giveBack() {
	p.state.since = p.since()
	since, late := p.state.since, p.state.late
	if p.cancels() && !p.late() {
		p.state = p.state.cancelled(p.Limit, p.now, p.tokens())
	} else {
		p.state = p.state.refunded(p.Limit, p.state.at, p.tokens())
	}
	p.state.booked, p.state.late, p.state.since = p.state.at > p.now, late, since
}

// since is when p is done, by the latest clock that the key has seen.
func (p *part) since() int64 {
	if p.held() {
		return max(p.now, p.state.since)
	}
	return p.time()
}

// decision is what p is answered, as its state now is.
func (p *part) decision() headgate.Decision {
	d := headgate.Decision{Limit: p.Limit, RetryAfter: headgate.Never}
	if p.wait != never {
		d.RetryAfter = duration(p.wait)
	}
	if left := p.state.left(p.Limit, p.time()); p.over {
		d.Remaining = min(left, 0)
	} else if !p.held() {
		d.Remaining = max(left, 0)
	}
	if p.held() || !p.state.clean(p.Limit, p.time()) {
		clean := first(p.time(), func(t int64) bool { return p.state.clean(p.Limit, t) })
		d.ResetAfter = duration(clean - p.now)
	}
	return d
}

// duration shows a wait of over 285 years as that.
func duration(micros int64) time.Duration {
	return time.Duration(min(micros, 1<<53-1)) * time.Microsecond
}
