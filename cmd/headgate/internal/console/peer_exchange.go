package console

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/redis/go-redis/v9"
)

// How long the instances keep what they write, and how often they write their history.
const (
	watchedTTL      = 5 * time.Second
	snapshotTTL     = 5 * time.Second
	historyTTL      = steps * stepTime // also of those that have stopped
	historyInterval = 10 * time.Second
	exchangeTimeout = 700 * time.Millisecond
	maxInstances    = 500
)

// fleet is where instances that share a Redis exchange snapshots while one of them has viewers:
//
//	@watched     exists while an instance has viewers
//	@instances   the ids of instances, in a sorted set by the time when they wrote last
//	@now:ID      the snapshot of an instance
//	@history:ID  its history, which it also writes when it stops
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
	gone     map[string]gone // those of them that had no snapshot then
}

// past is the history of an instance.
type past struct {
	gone // as it will be if nothing more is heard of it

	Steps []stepCounts `json:"steps"`
}

// incoming holds the snapshots of the other instances.
type incoming struct {
	err       error
	snapshots []*snapshot
	histories map[string]past // of those whose history is not known
	silent    map[string]bool // those of histories that have no snapshot
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
	instances, now := f.prefix+"instances", time.Now()
	var members *redis.StringSliceCmd
	if out.viewers {
		p.Set(ctx, f.prefix+"watched", 1, watchedTTL)
		oldest := strconv.FormatInt(now.Add(-historyTTL).Unix(), 10)
		p.ZRemRangeByScore(ctx, instances, "-inf", oldest)
		members = p.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: instances, Start: 0, Stop: maxInstances, Rev: true,
		})
	}
	if out.snapshot != nil {
		p.Set(ctx, f.prefix+"now:"+out.id, f.box.Seal(string(out.snapshot)), snapshotTTL)
	}
	p.ZAdd(ctx, instances, redis.Z{Member: out.id, Score: float64(now.Unix())})
	p.PExpire(ctx, instances, historyTTL)
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
	var news []string
	in.silent = map[string]bool{}
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			if _, noted := out.gone[others[i]]; !noted {
				in.silent[others[i]] = true
				news = append(news, others[i])
			}
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
	return f.readHistories(ctx, news, in)
}

func (f *fleet) readHistories(ctx context.Context, ids []string, in *incoming) error {
	in.histories = make(map[string]past, len(ids))
	for _, id := range ids {
		text, err := f.client.Get(ctx, f.prefix+"history:"+id).Result()
		if errors.Is(err, redis.Nil) {
			continue // it comes with one of the next snapshots
		}
		if err != nil {
			return err
		}
		var one past
		text, _ = f.box.Open(text)
		if json.Unmarshal([]byte(text), &one) != nil {
			one = past{} // of another version: its history begins now
		}
		in.histories[id] = one
	}
	return nil
}
