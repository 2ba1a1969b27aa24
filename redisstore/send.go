package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/redisscript"
)

// send has asks decided, and tells their callers. Those whose keys are on their way to another
// server of a Cluster hear later, and hold up nobody. All of that is done also if the user's code
// ends this goroutine.
func (l *lane) send(asks []*ask) {
	if len(asks) == 0 { // all have left
		return
	}
	begun := time.Now()
	batches := l.store.route.part(asks)
	var moving []*batch
	defer func() {
		tellAll(without(batches, moving))
		if len(moving) > 0 {
			go l.store.decideLater(moving, begun)
		}
	}()
	moving = l.store.decide(batches)
	l.store.sent(without(batches, moving), time.Since(begun))
}

// decideLater has batches decided once their keys have arrived, or gives up.
func (s *Store) decideLater(batches []*batch, begun time.Time) {
	defer func() { tellAll(batches) }()
	for pause := redisscript.FirstPause; len(batches) > 0; pause *= 2 {
		time.Sleep(pause)
		moving := s.decide(batches)
		if 2*pause >= redisscript.LastPause {
			moving = nil
		}
		decided := without(batches, moving)
		s.sent(decided, time.Since(begun))
		tellAll(decided)
		batches = moving
	}
}

// without is batches but for some.
func without(batches, some []*batch) []*batch {
	if len(some) == 0 {
		return batches
	}
	return slices.DeleteFunc(slices.Clone(batches), func(b *batch) bool { return slices.Contains(some, b) })
}

func tellAll(batches []*batch) {
	for _, b := range batches {
		b.tell()
	}
}

// decide calls the script for each batch, in one trip, and returns those of which keys are on
// their way. A call is repeated only if its answer says that nothing was decided.
func (s *Store) decide(batches []*batch) (moving []*batch) {
	if again := s.try(batches, s.clock.Now()); len(again) > 0 {
		s.try(again, s.clock.Now())
	}
	for _, b := range batches {
		if redisscript.Moving(b.err) {
			moving = append(moving, b)
		}
	}
	return moving
}

// try answers batches, but for those that were refused the time of the server: it returns
// them.
func (s *Store) try(batches []*batch, now int64) (again []*batch) {
	defer s.recoverFor(batches) // from a hook of the client
	calls := make([]redisscript.Call, len(batches))
	for i, b := range batches {
		calls[i] = b.call(now)
		b.answer("", redisscript.ErrExited) // until there is one
	}
	redisscript.Send(context.Background(), s.client, calls)
	for i, b := range batches {
		text, err := calls[i].Text()
		if now == 0 && s.clock.Refused(err) || b.needsSlowPath(err) {
			again = append(again, b)
			continue
		}
		if b.answer(text, err); err == nil {
			s.route.known.Store(true)
		}
	}
	return again
}

// recoverFor leaves a panic of the user's code to the callers of batches, in whose place it
// was called.
func (s *Store) recoverFor(batches []*batch) {
	value := recover()
	if value == nil {
		return
	}
	for _, b := range batches {
		b.err = nil
		for _, a := range b.asks {
			a.panicked = value
		}
	}
}
