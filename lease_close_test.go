package headgate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hold2 asks for a token each millisecond until p has two loans, and tells what is left of them.
func (p *process) hold2(t *testing.T) (left int64) {
	t.Helper()
	row, hash := p.lease.demands.row("k", p.limit)
	for range 1000 {
		p.ask(t.Context(), 1)
		synctest.Wait()
		row.mu.Lock()
		d := row.find(hash)
		first, second := d.loan.has(), d.next.has()
		row.mu.Unlock()
		if first > 0 && second > 0 {
			return first + second
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("there were never two loans")
	return 0
}

// Close gives back the loan in use, and the next one.
func TestLeaseCloseWithTwoLoans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10/s burst 100000"))}
		p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
		ahead := p.hold2(t)
		before := f.store.left(t, f.limit)
		if err := p.lease.Close(t.Context()); err != nil || f.store.left(t, f.limit) != before+ahead {
			t.Errorf("%v; %d remain, and %d before, when %d were ahead", err, f.store.left(t, f.limit), before, ahead)
		}
	})
}

// Neither is given back once the key has been reset, which gave it back already.
func TestLeaseResetWithTwoLoans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("1/s burst 100000"))}
		p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
		p.hold2(t)
		if err := p.lease.Reset(t.Context(), "k", f.limit); err != nil {
			t.Fatal(err)
		}
		must(f.store.Take(t.Context(), Request{Key: "k", Limit: f.limit, Cost: 1000}))
		time.Sleep(time.Second)
		if left := f.store.left(t, f.limit); left > 99002 {
			t.Errorf("%d remain of 99000, and a second", left)
		}
	})
}

// Close ends with its context.
func TestLeaseCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s"))}
		defer time.Sleep(time.Second) // until all that is on its way has arrived
		var late atomic.Int64
		p := f.process(LeaseOptions{}, func() time.Duration { return time.Duration(late.Load()) })
		p.hold(t)
		late.Store(int64(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		const want = "headgate: context deadline exceeded before all that was taken ahead was given back"
		if err := p.lease.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
		time.Sleep(2 * time.Hour)
	})
}

// A context that has ended is no error if there is nothing to give back, and else it is.
func TestLeaseCloseAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s"))}
		defer time.Sleep(time.Second) // until all that is on its way has arrived
		ended, end := context.WithCancel(t.Context())
		end()
		for range 100 { // by chance Close sees that it is done before it sees that ctx has ended
			p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
			for range 2 {
				if err := p.lease.Close(ended); err != nil {
					t.Fatalf("nothing was taken ahead: %v", err)
				}
			}
		}
		p := f.process(LeaseOptions{}, func() time.Duration { return time.Millisecond })
		p.hold(t)
		if err := p.lease.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("something was: %v", err)
		}
		time.Sleep(time.Second)
		if err := p.lease.Close(ended); err != nil {
			t.Errorf("it was given back: %v", err)
		}
	})
}

// Close says what the store did not get back: if it cannot say, if that is late, and if what was taken ahead
// arrives when it is closed already.
func TestLeaseCloseGivesNothingBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse func(r *Request) error // to give it back
		is     error
		want   string
	}{
		{"a store that cannot say", func(*Request) error { return errDead }, errDead, "dead"},
		{"a store for which it is late", func(r *Request) error { r.Ticket++; return nil }, errLeaseOver, "it came too late"},
	} {
		for _, underWay := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s burst 100000"))}
				p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
				tokens := int64(0)
				p.bend = func(_ context.Context, rs []Request, _ []Decision) (done bool, err error) {
					if rs[0].Cost < 0 && p.lease.closed.Load() {
						tokens -= rs[0].Cost
						err = c.refuse(&rs[1])
					} else if underWay {
						time.Sleep(5 * time.Millisecond)
					}
					return err != nil, err
				}
				if underWay {
					for range leastTakes {
						p.ask(t.Context(), 1)
					}
				} else {
					p.hold(t)
				}
				for range 2 { // which says the same again
					err := p.lease.Close(t.Context())
					want := fmt.Sprintf("headgate: %d tokens that were taken ahead may not have been given back: %s", tokens, c.want)
					if tokens == 0 || !errors.Is(err, c.is) || err.Error() != want {
						t.Errorf("%s, under way %v: %v; want %s", c.name, underWay, err, want)
					}
				}
			})
		}
	}
}

// Nor may what was being taken ahead, if the answer is lost.
func TestLeaseCloseWithALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s burst 100000"))}
		defer time.Sleep(time.Second) // until all that is on its way has arrived
		p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
		var tokens atomic.Int64
		p.bend = func(_ context.Context, rs []Request, _ []Decision) (bool, error) {
			tokens.Store(rs[0].Cost)
			time.Sleep(200 * time.Millisecond)
			return false, nil
		}
		for range leastTakes {
			p.ask(t.Context(), 1)
		}
		err := p.lease.Close(t.Context())
		if want := fmt.Sprintf("headgate: %d tokens that were taken ahead may not have been given back: context deadline exceeded", tokens.Load()); tokens.Load() == 0 || fmt.Sprint(err) != want {
			t.Errorf("%v; want %s", err, want)
		}
	})
}

// What is not given back in the ordinary course, which is stated, is no error of Close.
func TestLeaseCloseWithNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s"))}
		p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
		refused := 0
		p.bend = func(_ context.Context, rs []Request, _ []Decision) (done bool, err error) {
			if rs[0].Cost < 0 {
				refused++
				return true, errDead
			}
			return false, nil
		}
		p.hold(t)
		time.Sleep(time.Second)
		if err := p.lease.Close(t.Context()); err != nil || refused == 0 {
			t.Errorf("%v, after %d", err, refused)
		}
	})
}
