package console

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/redis/go-redis/v9"
)

// How long the instances keep what they write, and how often they write their history.
const (
	watchedTTL      = 5 * time.Second
	snapshotTTL     = 5 * time.Second
	instancesTTL    = time.Minute
	historyTTL      = 30 * time.Second
	historyInterval = 10 * time.Second
	exchangeTimeout = 700 * time.Millisecond
	maxInstances    = 500
)

// fleet is where instances that share a Redis exchange snapshots while one of them has viewers:
//
//	@watched     exists while an instance has viewers
//	@instances   the ids of instances, in a sorted set of which the scores do not count
//	@now:ID      the snapshot of an instance
//	@history:ID  its history
//
// No limit and no permit has such keys. The braces keep them on one server of a Cluster. The
// commands are those that a Redis user needs for limits, permits and a redisstore.Fleet.
type fleet struct {
	client redis.UniversalClient
	prefix string
	box    *seal.Box // for snapshots and histories; nil: they are clear
}

// outgoing is what an instance asks the others, and shows to them.
type outgoing struct {
	id       string
	viewers  bool // it has viewers, and wants to know the others
	snapshot []byte
	history  []byte          // nil: not now
	known    map[string]bool // ids whose history it knows
}

// incoming holds the snapshots of the other instances.
type incoming struct {
	err       error
	snapshots []*snapshot
	histories map[string][]stepCounts // of those whose history is not known
}

// Ask lets a round trip also ask whether another instance has viewers. It is for overrides.Table.
func (h *Handler) Ask(ctx context.Context, p redis.Pipeliner) (after func()) {
	if h.fleet == nil {
		return func() {}
	}
	watched := p.Get(ctx, h.fleet.prefix+"watched")
	return func() {
		if watched.Err() != nil { // there are none, or Redis fails
			return
		}
		select {
		case h.watched <- struct{}{}:
		default: // Run has not read the last one
		}
	}
}

// exchange writes and reads what is in Redis while an instance has viewers.
func (f *fleet) exchange(ctx context.Context, out outgoing) (in incoming) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	ids, err := f.write(ctx, out)
	if in.err = err; err == nil && out.viewers {
		in.err = f.read(ctx, out, ids, &in)
	}
	return in
}

// write writes what an instance shows. If it has viewers, it returns the ids of all instances.
func (f *fleet) write(ctx context.Context, out outgoing) (ids []string, err error) {
	p := f.client.Pipeline()
	var members *redis.StringSliceCmd
	if out.viewers {
		p.Set(ctx, f.prefix+"watched", 1, watchedTTL)
		members = p.ZRange(ctx, f.prefix+"instances", 0, maxInstances)
	}
	p.Set(ctx, f.prefix+"now:"+out.id, f.box.Seal(string(out.snapshot)), snapshotTTL)
	p.ZAdd(ctx, f.prefix+"instances", redis.Z{Member: out.id})
	p.PExpire(ctx, f.prefix+"instances", instancesTTL)
	if out.history != nil {
		p.Set(ctx, f.prefix+"history:"+out.id, f.box.Seal(string(out.history)), historyTTL)
	}
	if _, err := p.Exec(ctx); err != nil || members == nil {
		return nil, err
	}
	return members.Val(), nil
}

// read reads the snapshots of the others, and the histories that are not known.
func (f *fleet) read(ctx context.Context, out outgoing, ids []string, in *incoming) error {
	var others, keys []string
	for _, id := range ids {
		if id != out.id {
			others, keys = append(others, id), append(keys, f.prefix+"now:"+id)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	values, err := f.client.MGet(ctx, keys...).Result()
	if err != nil {
		return err
	}
	var gone []any
	var news []string
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			gone = append(gone, others[i])
			continue
		}
		text, _ = f.box.Open(text) // "" if it is not sealed
		snap := new(snapshot)
		if json.Unmarshal([]byte(text), snap) != nil {
			continue // of a version that writes another form
		}
		snap.ID = others[i]
		in.snapshots = append(in.snapshots, snap)
		if !out.known[others[i]] {
			news = append(news, others[i])
		}
	}
	if len(gone) > 0 { // one that comes back adds itself again
		if err := f.client.ZRem(ctx, f.prefix+"instances", gone...).Err(); err != nil {
			return err
		}
	}
	return f.readHistories(ctx, news, in)
}

func (f *fleet) readHistories(ctx context.Context, ids []string, in *incoming) error {
	in.histories = make(map[string][]stepCounts, len(ids))
	for _, id := range ids {
		text, err := f.client.Get(ctx, f.prefix+"history:"+id).Result()
		if errors.Is(err, redis.Nil) {
			continue // it comes with one of the next snapshots
		}
		if err != nil {
			return err
		}
		var list []stepCounts
		text, _ = f.box.Open(text)
		if json.Unmarshal([]byte(text), &list) != nil {
			list = nil // of another version: its history begins now
		}
		in.histories[id] = list
	}
	return nil
}
