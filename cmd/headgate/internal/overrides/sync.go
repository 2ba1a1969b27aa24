package overrides

import (
	"context"
	"time"

	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// Interval is how often [Table.Run] looks for changes.
const Interval = 500 * time.Millisecond

// within is the longest time of one look for changes.
const within = 2 * time.Second

// Also adds commands to a round trip to Redis. It returns a function to call after the trip.
type Also func(context.Context, redis.Pipeliner) (after func())

// Run looks for changes of other instances every [Interval] until ctx ends: one round trip, and
// another one if something has changed. also, which may be nil, adds commands to the first one.
// While Redis fails, the last overrides that were read stay in force.
func (t *Table) Run(ctx context.Context, also Also) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	failing := false
	for {
		err := t.look(ctx, also)
		if err != nil && !failing && ctx.Err() == nil {
			t.report(err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refresh reads the changes of the overrides at once.
func (t *Table) Refresh(ctx context.Context) error { return t.look(ctx, nil) }

// look reads the changes, and calls the functions of [Table.Follow] with them. Modes also expire
// while Redis fails.
func (t *Table) look(ctx context.Context, also Also) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	n, err := t.keeper.news(ctx, t.version, also)
	if err != nil {
		t.tell(nil)
		return redisscript.Explain("overrides: read", err, nil)
	}
	t.tell(t.loaded.apply(n, t.report))
	t.version = n.version // last: after a panic, the news are read again
	return nil
}
