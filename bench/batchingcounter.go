package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// counterWay decides by a fixed window without a script: INCR, and EXPIRE NX beside it
// in the same pipeline, so that the window begins with its first take. It counts
// denials too, and a connection that breaks between the two leaves a key without end.
type counterWay struct {
	client *redis.Client
	burst  int64
	window time.Duration
}

func newCounterWay(s Setup) counterWay { return counterWay{newGoRedis(s.Addr), s.Burst, s.Period()} }

func openCounterCalls(s Setup) (Contender, error) { return single{newCounterWay(s)}, nil }

// counterBatches sends one pipeline for all who share a batch.
func counterBatches(lanes int) func(Setup) (Contender, error) {
	return func(s Setup) (Contender, error) { return newCoalescer(newCounterWay(s), lanes, batchMost), nil }
}

func (w counterWay) decide(keys []string) ([]bool, error) {
	ctx := context.Background()
	pipe := w.client.Pipeline()
	counts := make([]*redis.IntCmd, len(keys))
	for i, key := range keys {
		counts[i] = pipe.Incr(ctx, key)
		pipe.ExpireNX(ctx, key, w.window)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	granted := make([]bool, len(keys))
	for i, n := range counts {
		granted[i] = n.Val() <= w.burst
	}
	return granted, nil
}

func (w counterWay) Close() error { return w.client.Close() }
