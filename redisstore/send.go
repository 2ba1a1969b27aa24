package redisstore

import (
	"context"
	"time"

	"github.com/headgate/headgate/internal/redisscript"
)

// send has asks decided, and tells their callers.
func (l *lane) send(asks []*ask) {
	if len(asks) == 0 { // all have left
		return
	}
	begun := time.Now()
	batches := l.store.route.part(asks)
	l.store.decide(batches)
	l.store.sent(batches, time.Since(begun))
	for _, b := range batches {
		b.free()
	}
	for _, a := range asks {
		a.done <- struct{}{}
	}
}

// decide calls the script for each batch, in one trip. A call is repeated only if its
// answer says that nothing was decided.
func (s *Store) decide(batches []*batch) {
	defer func() {
		if p := recover(); p != nil { // a hook of the client: for the callers to deal with
			panicked(batches, p)
		}
	}()
	again := s.try(batches, s.clock.Now())
	if len(again) > 0 {
		s.try(again, s.clock.Now())
	}
}

// try answers batches, but for those that were refused the time of the server: it returns
// them.
func (s *Store) try(batches []*batch, now int64) (again []*batch) {
	calls := make([]redisscript.Call, len(batches))
	for i, b := range batches {
		calls[i] = b.call(now)
	}
	redisscript.Send(context.Background(), s.client, calls)
	for i, b := range batches {
		text, err := calls[i].Text()
		if now == 0 && s.clock.Refused(err) {
			again = append(again, b)
			continue
		}
		b.answer(text, err)
	}
	return again
}

func panicked(batches []*batch, value any) {
	for _, b := range batches {
		for _, a := range b.asks {
			a.panicked = value
		}
	}
}
