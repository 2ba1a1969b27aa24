package main

import (
	"context"
	"fmt"
)

// weighTakes is how many takes each key has had when it is weighed.
const weighTakes = 10

// weighName is the workload of the cells that weigh.
func weighName(keys int) string {
	return fmt.Sprintf("%s keys resident, %d takes each", count(keys), weighTakes)
}

// weighRedis fills the database with keys limited by e and says what each of
// them costs: the growth of used_memory, and what MEMORY USAGE sums up to.
func (r redisRun) weighRedis(ctx context.Context, e Entry, keys int) error {
	if err := r.server.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	c, err := e.Open(Setup{Terms: Terms{Burst: weighTakes, Every: refill}, Keys: keys, Addr: r.server.Addr})
	if err != nil {
		return err
	}
	defer func() { _ = closeContender(c) }()
	w := uniform(keys)
	// A first filling, thrown away, opens the connections and loads the scripts.
	if err := warmRedis(c, w, 64, newTouched(w.Seq)); err != nil {
		return err
	}
	if err := r.server.admin.FlushDB(ctx).Err(); err != nil {
		return err
	}
	before, err := r.server.infoNumber(ctx, "memory", "used_memory")
	if err != nil {
		return err
	}
	for range weighTakes {
		if err := warmRedis(c, w, 64, newTouched(w.Seq)); err != nil {
			return err
		}
	}
	return r.weighed(ctx, e, keys, before)
}

// weighed reads the scales and records the sample.
func (r redisRun) weighed(ctx context.Context, e Entry, keys int, before float64) error {
	if err := r.server.checkSize(ctx, keys*e.redisKeys(), e.ExtraKeys); err != nil {
		return err
	}
	after, err := r.server.infoNumber(ctx, "memory", "used_memory")
	if err != nil {
		return err
	}
	usage, err := r.server.usage(ctx)
	if err != nil {
		return err
	}
	cell := Cell{redisStore, weighName(keys), 0, e.Name}
	r.out.Add(cell, Sample{
		Bytes:   (after - before) / float64(keys),
		ByUsage: float64(usage) / float64(keys),
	})
	return nil
}

// weighAll weighs the field, and this project's other algorithms.
func (r redisRun) weighAll(ctx context.Context, keys int) error {
	for _, e := range append(r.field, headgateAlgorithms()...) {
		if e.Only != "" {
			continue
		}
		if err := r.weighRedis(ctx, e, keys); err != nil {
			return fmt.Errorf("%s, weighed: %w", e.Name, err)
		}
	}
	return nil
}
