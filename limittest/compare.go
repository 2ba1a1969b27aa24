package limittest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

const (
	perSequence = 250 // requests of one key
	callers     = 16
)

// eachSequence runs check for enough sequences of each algorithm, several at a time.
func eachSequence(t *testing.T, check func(t *testing.T, s *sequence) error) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			seeds := make(chan uint64)
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for seed := range seeds {
						if err := check(t, newSequence(a, seed)); err != nil {
							t.Errorf("sequence %d: %v", seed, err)
						}
					}
				})
			}
			base := rand.Uint64() // a failure names its seed
			for i := range uint64(max(ops()/perSequence, 1)) {
				seeds <- base + i
			}
			close(seeds)
			wg.Wait()
		})
	}
}

// Definitions checks each decision of s on random requests against the
// definition of the algorithm: granted if and only if the cost fits; Remaining is
// the most that fits; RetryAfter and ResetAfter are true, and not a microsecond
// too long.
func Definitions(t *testing.T, s headgate.Store) {
	eachSequence(t, func(t *testing.T, random *sequence) error {
		m := newModel(random.limit)
		for i := range perSequence {
			r := random.next()
			d, err := s.Take(t.Context(), r)
			if err != nil {
				return fmt.Errorf("request %d: %s: %w", i, show(r), err)
			}
			if err := m.check(r, d); err != nil {
				return fmt.Errorf("request %d: %s: answer %s: %w", i, show(r), describe(d), err)
			}
		}
		return nil
	})
}

// check compares d with what the definition says, and takes it over.
func (m *model) check(r headgate.Request, d headgate.Decision) error {
	t := r.At.UnixMicro()
	ask := max(r.Cost, -m.limit.Capacity())
	if ask == 0 {
		ask = 1
	}
	if want := m.fits(t, ask) || ask < 0; d.Allowed() != want {
		return fmt.Errorf("allowed is %v; want %v", d.Allowed(), want)
	}
	if d.Allowed() && r.Cost != 0 {
		m.charge(t, ask)
	}
	if err := m.checkRemaining(t, d.Remaining); err != nil {
		return err
	}
	if err := m.checkRetry(t, ask, d); err != nil {
		return err
	}
	return m.checkReset(t, d.ResetAfter.Microseconds())
}

func (m *model) checkRemaining(t, remaining int64) error {
	if remaining != 0 && !m.fits(t, remaining) {
		return fmt.Errorf("remaining is %d, which would be refused", remaining)
	}
	if m.fits(t, remaining+1) {
		return fmt.Errorf("remaining is %d, but one more would be granted", remaining)
	}
	return nil
}

func (m *model) checkRetry(t, ask int64, d headgate.Decision) error {
	switch retry := d.RetryAfter.Microseconds(); {
	case d.Allowed() && d.RetryAfter != 0:
		return fmt.Errorf("allowed, but retry after %s", d.RetryAfter)
	case d.Allowed():
		return nil
	case (ask > m.limit.Capacity()) != (d.RetryAfter == headgate.Never):
		return fmt.Errorf("retry after %s for a cost of %d of %d", d.RetryAfter, ask, m.limit.Capacity())
	case d.RetryAfter == headgate.Never:
		return nil
	case !m.fits(t+retry, ask):
		return fmt.Errorf("refused again after %s", d.RetryAfter)
	case m.fits(t+retry-1, ask):
		return fmt.Errorf("granted before %s", d.RetryAfter)
	}
	return nil
}

func (m *model) checkReset(t, reset int64) error {
	if !m.pristine(t + reset) {
		return fmt.Errorf("reset after %s is too early", time.Duration(reset)*time.Microsecond)
	}
	if reset > 0 && m.pristine(t+reset-1) {
		return fmt.Errorf("reset after %s is too late", time.Duration(reset)*time.Microsecond)
	}
	return nil
}

// Agreement puts the same random requests to both stores and wants the same
// decisions, field by field. Limits change their numbers, keys are reset, and
// some requests are taken together with others.
func Agreement(t *testing.T, got, want headgate.Store) {
	eachSequence(t, func(t *testing.T, random *sequence) error {
		limits := [4]headgate.Limit{}
		for i := range limits {
			limits[i] = randomLimit(random.Rand, random.limit.Algorithm()).Named("agreed")
		}
		// One differs from another in its capacity alone, as most changes do.
		limits[1] = resized(limits[0], limits[1].Capacity())
		for i := range perSequence {
			if random.IntN(30) == 0 {
				random.limit = limits[random.IntN(len(limits))]
			}
			if err := agree(t, random, got, want); err != nil {
				return fmt.Errorf("request %d: %w", i, err)
			}
		}
		return nil
	})
}

// resized is l with another capacity, or l if that would not be valid.
func resized(l headgate.Limit, capacity int64) headgate.Limit {
	var other headgate.Limit
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		other = headgate.Per(l.Refill(), l.Period()).Burst(capacity)
	case headgate.AlgorithmStepped:
		other = headgate.SteppedTokenBucket(l.Refill(), l.Period()).Burst(capacity)
	case headgate.AlgorithmFixedWindow:
		other = headgate.FixedWindow(capacity, l.Period())
	case headgate.AlgorithmSlidingWindow:
		other = headgate.SlidingWindow(capacity, l.Period())
	default:
		other = headgate.SlidingLog(capacity, l.Period())
	}
	if other.Validate() != nil {
		return l
	}
	return other.Named("agreed")
}

// agree puts one step of the sequence to both stores: a request, several
// together, or a reset.
func agree(t *testing.T, random *sequence, got, want headgate.Store) error {
	r := random.next()
	switch random.IntN(40) {
	case 0:
		if err := got.Reset(t.Context(), r.Key, r.Limit); err != nil {
			return err
		}
		return want.Reset(t.Context(), r.Key, r.Limit)
	case 1, 2, 3:
		return agreeTogether(t, random, r, got, want)
	}
	g, err := got.Take(t.Context(), r)
	if err != nil {
		return fmt.Errorf("%s: %w", show(r), err)
	}
	w, err := want.Take(t.Context(), r)
	if err != nil {
		return fmt.Errorf("%s: %w", show(r), err)
	}
	if g != w {
		return fmt.Errorf("%s:\n got  %s\n want %s", show(r), describe(g), describe(w))
	}
	return nil
}

// agreeTogether takes r together with requests of the same key under limits that
// the sequence keeps for that.
func agreeTogether(t *testing.T, random *sequence, r headgate.Request, got, want headgate.Store) error {
	rs := []headgate.Request{r}
	for i := range 1 + random.IntN(2) {
		sibling := r
		sibling.Limit = parse(t, []string{"sibling=3/s", "other=40/m sliding-log"}[i])
		sibling.Cost = random.Int64N(3)
		rs = append(rs, sibling)
	}
	gs, ws := make([]headgate.Decision, len(rs)), make([]headgate.Decision, len(rs))
	if err := got.TakeAll(t.Context(), rs, gs); err != nil {
		return err
	}
	if err := want.TakeAll(t.Context(), rs, ws); err != nil {
		return err
	}
	for i := range rs {
		if gs[i] != ws[i] {
			return fmt.Errorf("together, %d of %d: %s:\n got  %s\n want %s", i+1, len(rs), show(rs[i]), describe(gs[i]), describe(ws[i]))
		}
	}
	return nil
}
