package redisstore

import (
	"sync/atomic"
	"time"
)

// Stats are counts since the store was made.
type Stats struct {
	Callers    int64 // calls that waited for a trip: of a TakeAll over several servers one for each key, and what it gives back
	Batches    int64 // trips to servers in which some of them were answered
	Requests   int64 // that were sent in them
	Waiting    int64 // of the callers, whose request has not been sent, at this moment
	Busy       int64 // callers who were told [ErrBusy]
	NotSent    int64 // callers whose context ended before their request was sent, or before they called: nothing was charged
	Unanswered int64 // callers whose context ended after that, or while the client connected: their requests may be charged
}

// Batch is what [Options].OnBatch is told.
type Batch struct {
	Requests int           // how many were answered together: each is told of once
	Keys     int           // how many different keys in Redis they have, of which each limit has its own
	Took     time.Duration // from the sending to the answer, with all pauses for keys that move in a Cluster
	Err      error         // why none was decided, or the first of several reasons
}

type stats struct{ callers, batches, requests, waiting, busy, notSent, unanswered atomic.Int64 }

// Stats tells how the store's callers have fared.
func (s *Store) Stats() Stats {
	return Stats{
		Callers: s.stats.callers.Load(), Batches: s.stats.batches.Load(), Requests: s.stats.requests.Load(), Waiting: s.stats.waiting.Load(),
		Busy: s.stats.busy.Load(), NotSent: s.stats.notSent.Load(), Unanswered: s.stats.unanswered.Load(),
	}
}

// sent counts a trip to the server in which batches were answered, and tells who wants to know.
func (s *Store) sent(batches []*batch, took time.Duration) {
	if len(batches) == 0 {
		return
	}
	told := Batch{Took: took}
	for _, b := range batches {
		told.Keys += len(b.names.all)
		for _, a := range b.asks {
			told.Requests += len(a.requests)
			if told.Err == nil {
				told.Err = s.explain(a.err)
			}
		}
	}
	s.stats.batches.Add(1)
	s.stats.requests.Add(int64(told.Requests))
	if s.onBatch != nil {
		defer s.recoverFor(batches)
		s.onBatch(told)
	}
}
