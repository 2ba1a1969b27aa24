package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/redisscript"
)

// send has calls decided in one trip to the servers, and answers them. Calls whose keys are moving
// to another server of a Cluster are answered later, so that the others need not wait. send
// reports whether the servers answered.
func (s *Store) send(calls []*call) (answered bool) {
	if len(calls) == 0 { // all callers have left
		return false
	}
	if s.single {
		b := newBatch()
		for _, c := range calls {
			b.add(c)
		}
		_, answered = s.trip([]*batch{b}, true)
		return answered
	}
	moving, answered := s.trip(batchesByKey(calls), false)
	if len(moving) > 0 {
		go s.sendAgain(moving)
	}
	return answered
}

// sendAgain sends batches again while their keys are moving, for a limited number of times.
func (s *Store) sendAgain(batches []*batch) {
	for pause := redisscript.FirstPause; len(batches) > 0; pause *= 2 {
		time.Sleep(pause)
		batches, _ = s.trip(batches, 2*pause >= redisscript.LastPause)
	}
}

// trip has batches decided, answers their calls, and counts them. Unless it is the last attempt,
// it returns the batches whose keys are moving, without an answer. It reports whether a server has
// decided.
func (s *Store) trip(batches []*batch, last bool) (moving []*batch, decided bool) {
	unusable := s.usable()
	if unusable == nil {
		s.decide(batches)
		s.stats.batches.Add(1)
	}
	for _, b := range batches {
		if unusable != nil {
			b.answer(nil, unusable)
		} else {
			s.stats.requests.Add(int64(b.size()))
		}
		decided = decided || b.err == nil
		if !last && redisscript.Moving(b.err) {
			moving = append(moving, b)
		} else {
			b.finish()
		}
	}
	return moving, decided
}

// decide runs the script for each batch. A run is repeated only if its answer proves that nothing
// was decided.
func (s *Store) decide(batches []*batch) {
	now := s.clock.Now()
	s.run(batches, now)
	var again []*batch
	for _, b := range batches {
		if now == 0 && s.clock.Refused(b.err) || b.needsSlowPath() {
			again = append(again, b)
		}
	}
	if len(again) > 0 {
		s.run(again, s.clock.Now())
	}
}

// run runs the script once for each batch, at a time of this process, or 0 for the server's.
func (s *Store) run(batches []*batch, now int64) {
	var room [1]*redisscript.Run
	runs := room[:0]
	for _, b := range batches {
		b.prepare(now)
		runs = append(runs, &b.run)
	}
	redisscript.Send(context.Background(), s.client, runs...)
	for _, b := range batches {
		if b.run.Loaded() {
			s.probe.next.Store(0) // it may be another server than before
		}
		text, err := b.run.Reply()
		if b.answer(text, err); err == nil && !s.known.Load() {
			s.known.Store(true)
		}
	}
}

// Stats are counts since the store was made.
type Stats struct {
	Callers    int64 // calls; a TakeAll over several servers counts once for each key and refund
	Batches    int64 // trips to servers
	Requests   int64 // requests in these trips, counted again if a key of a Cluster was moving
	Waiting    int64 // calls that now wait to be sent
	Busy       int64 // calls rejected with [ErrBusy]
	NotSent    int64 // calls whose context ended before they were sent: nothing is charged
	Unanswered int64 // calls whose context ended after they were sent: they may be charged
}

type stats struct{ callers, batches, requests, busy, notSent, unanswered atomic.Int64 }

// Stats returns the counts.
func (s *Store) Stats() Stats {
	return Stats{
		Callers:    s.stats.callers.Load(),
		Batches:    s.stats.batches.Load(),
		Requests:   s.stats.requests.Load(),
		Waiting:    s.waiting(),
		Busy:       s.stats.busy.Load(),
		NotSent:    s.stats.notSent.Load(),
		Unanswered: s.stats.unanswered.Load(),
	}
}
