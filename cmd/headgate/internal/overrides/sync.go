package overrides

import (
	"context"
	"math"
	"strconv"
	"strings"
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
		if failing = err != nil; !failing {
			t.deleteEnded(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// clocksDiffer is by how much the clocks of instances and of Redis may differ.
const clocksDiffer = time.Minute

// deleteEnded deletes entries from the store that have ended, if the last look for them was a while
// ago. All instances do so, and the first one deletes them.
func (t *Table) deleteEnded(ctx context.Context) {
	now := time.Now()
	ended := t.loaded.sweep(now, now.Add(-clocksDiffer), math.MaxInt)
	if len(ended) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	// If it fails, the next one deletes them.
	_, _ = t.keeper.change(ctx, change{field: ended[0], from: ended[1], expired: ended[2:]})
}

// listedNames is how many changes change.lua lists. An instance that has missed fewer reads all
// only if the store has lost some.
const listedNames = 1000

// changes is the number of changes in a version; 0 if it has none.
func changes(version string) int {
	text, _, _ := strings.Cut(version, ":")
	n, _ := strconv.Atoi(text)
	return n
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
	if n.all && changes(n.version) < changes(t.version)+listedNames {
		lost := t.loaded.inForceAt(time.Now().Add(clocksDiffer), n.fields)
		if len(lost) > 0 {
			t.report(LostError(countKinds(lost)))
			_ = t.keeper.keepLost(ctx, newLost(lost)) // if it fails, the report has the numbers
		}
	}
	t.tell(t.loaded.apply(n, t.report))
	t.version = n.version // last: after a panic, the news are read again
	return nil
}
