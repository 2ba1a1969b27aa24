package headgate

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// walkVersions runs random timelines under two or three random versions of a limit, often
// at the edge of what can be counted, and calls check after each step.
func walkVersions(t *testing.T, seed uint64, check func(before, after *reference, l *rule, now, cost int64, v verdict)) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		ls := []*rule{anyLimit(random)}
		for len(ls) < 2+random.IntN(2) || ls[0].algorithm == AlgorithmSlidingLog {
			if l := anyLimit(random); ls[0].algorithm == AlgorithmSlidingLog {
				ls[0] = l
			} else if l.algorithm == ls[0].algorithm {
				ls = append(ls, l)
			}
		}
		s := &reference{limit: ls[0]}
		now := midnight.UnixMicro()
		v := verdict{remaining: ls[0].capacity}
		for range 40 {
			l := ls[random.IntN(len(ls))]
			if now += anyWait(random, l, v); now < 1 || now > maxExact {
				break
			}
			cost := anyCost(random, l, v.remaining)
			before := *s
			v = s.take(l, now, cost)
			check(&before, s, l, now, cost, v)
			if t.Failed() {
				return
			}
		}
	}
}

// What lies beside a state stays within what can be counted: its own numbers, what it may
// come to, and how long it takes until it is as at first sight.
func TestVersionsStayWithin53Bits(t *testing.T) {
	var beside [6]int
	largest := int64(0)
	walkVersions(t, 1, func(_, s *reference, _ *rule, now, _ int64, _ verdict) {
		v := s.other
		if s.state.used < 0 || s.state.at < 0 || s.state.used > s.limit.mostUsed {
			t.Errorf("%s: %+v, and at most %d can be missing", s.limit.text(), s.state, s.limit.mostUsed)
		}
		if v.l == nil {
			return
		}
		beside[v.l.algorithm]++
		largest = max(largest, v.used)
		if v.used < 0 || v.previous < 0 || v.at < 0 || v.used > v.most || v.most > maxExact || v.left > maxExact {
			t.Errorf("beside %s: %s: %+v", s.limit.text(), v.l.text(), v)
		}
		if v.l.algorithm == AlgorithmTokenBucket && v.most > maxExact/2 {
			t.Errorf("beside %s: %s: %+v has more than units are counted to", s.limit.text(), v.l.text(), v)
		}
		steps := big.NewInt(v.l.lifetime(v.most) / v.l.period)
		if v.l.algorithm == AlgorithmStepped && new(big.Int).Mul(steps, big.NewInt(v.l.period)).Cmp(big.NewInt(maxExact)) > 0 {
			t.Errorf("beside %s: %s: %+v takes longer than can be counted", s.limit.text(), v.l.text(), v)
		}
		if at := v.since(max(now, v.at)); at.used > v.used || at.used < 0 {
			t.Errorf("%s: %+v at %d is %+v", v.l.text(), v, now, at)
		}
	})
	if beside[AlgorithmTokenBucket] < 1000 || beside[AlgorithmStepped] < 1000 || beside[AlgorithmFixedWindow] < 100 || beside[AlgorithmSlidingWindow] < 100 || largest < maxExact/4 {
		t.Errorf("%d states lay beside others, with at most %d used: this tells little", beside, largest)
	}
}

// What a grant charges beside its own state is what it charges there, as far as that may go.
func TestVersionsAreChargedAlike(t *testing.T) {
	charged := 0
	walkVersions(t, 2, func(before, s *reference, l *rule, now, cost int64, v verdict) {
		if cost == 0 || !v.granted() || before.limit != l || before.other.l == nil || s.other.l == nil {
			return
		}
		charged++
		now = max(now, before.other.at)
		was := before.other.since(now)
		want := new(big.Int).Mul(big.NewInt(l.ask(cost)), big.NewInt(was.l.unit))
		want.Add(want, big.NewInt(was.used))
		if want.Sign() < 0 {
			want.SetInt64(0)
		}
		if most := big.NewInt(was.most); want.Cmp(most) > 0 {
			want = most
		}
		if got := s.other.used; got != want.Int64() {
			t.Errorf("%s: %d of %s beside %+v makes %d of it, want %v", l.text(), cost, was.l.text(), was, got, want)
		}
	})
	if charged < 10_000 {
		t.Errorf("only %d were charged: this tells little", charged)
	}
}

// With another version beside it, a state tells the truth about when to come back, and
// when it is as at first sight.
func TestVersionsTellTheTruthAboutWaits(t *testing.T) {
	told := 0
	look := func(s *reference, l *rule, now, cost int64) verdict {
		_, _, v := l.decideBeside(s.state, s.other, now, cost, false)
		return v
	}
	walkVersions(t, 3, func(_, s *reference, l *rule, now, cost int64, v verdict) {
		if s.limit != l || s.other.l == nil || now+max(v.retry, v.reset) > maxExact {
			return
		}
		told++
		if v.retry > 0 && (!look(s, l, now+v.retry, cost).granted() || look(s, l, now+v.retry-1, cost).granted()) {
			t.Errorf("%s: %d at %d (%+v beside %+v) does not fit just after %d", l.text(), cost, now, s.state, s.other, v.retry)
		}
		if v.reset > 0 && (look(s, l, now+v.reset, 0).reset != 0 || look(s, l, now+v.reset-1, 0).reset != 1) {
			t.Errorf("%s: %d at %d (%+v beside %+v) is not reset just after %d", l.text(), cost, now, s.state, s.other, v.reset)
		}
	})
	if told < 10_000 {
		t.Errorf("only %d were told: this tells little", told)
	}
}

// Versions are forgotten: nothing but its key is kept of a key that was not asked for
// as long as either version takes to be as at first sight.
func TestVersionsPass(t *testing.T) {
	walkVersions(t, 4, func(_, s *reference, _ *rule, now, _ int64, _ verdict) {
		lifetime := s.limit.lifetime(s.limit.mostUsed)
		if s.other.l != nil {
			lifetime = max(lifetime, s.other.l.lifetime(s.other.most))
		}
		at := max(now, s.state.at, s.other.at)
		if s.limit.since(s.state, at+lifetime) != (state{}) || s.other.l != nil && !s.other.since(at+lifetime).fresh() {
			t.Errorf("%s: %+v beside %+v still counts after %d", s.limit.text(), s.state, s.other, lifetime)
		}
	})
}
