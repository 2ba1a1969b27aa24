package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/sample"
	"github.com/redis/go-redis/v9"
)

// How samples of other instances are gathered.
const (
	wantTimeout   = 6 * time.Second // for @wanted to be free: more than its TTL
	gatherTimeout = 3 * time.Second // for the answers
	gatherPause   = 100 * time.Millisecond
	acquaintance  = 1500 * time.Millisecond // until all instances are in @instances
	answerTTL     = 10 * time.Second
	maxAnswer     = 1 << 20 // bytes
	maxAnswers    = 4 << 20 // of all instances: about a million entries, as maxReplayed
	manyInstances = 64      // the assumed number of instances if no page is open
)

// wanted is the sample of a rule that an instance asks all others for.
type wanted struct {
	ID    string `json:"id"`
	By    string `json:"by"` // the id of the instance
	Rule  string `json:"rule"`
	Bytes int    `json:"bytes"` // at most, of each
}

// gathered are the samples of the fleet.
type gathered struct {
	parts   []sample.Part // that of the asked instance is the first
	missing []string      // the names of instances that did not answer
	err     error         // others are not known
}

// gather asks all instances for what they know of a rule.
func (h *Handler) gather(ctx context.Context, rule string) (g gathered) {
	parts := map[string]sample.Part{}
	if h.fleet != nil {
		w := wanted{ID: rand.Text(), By: h.id, Rule: rule}
		if g.err = h.fleet.want(ctx, &w, h.isAcquainted()); g.err == nil {
			defer h.fleet.unwant(ctx)
			// The time that another instance took for its samples is not taken from the answers.
			ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
			defer cancel()
			g.missing, g.err = h.fleet.gather(ctx, &w, h.isAcquainted, parts)
		}
	}
	own := h.options.Sample.Part(rule)
	own.Name = h.instance
	g.parts = append(g.parts, own)
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		g.parts = append(g.parts, parts[id])
	}
	return g
}

// isAcquainted reports whether a page has been open so long that all instances are in @instances.
func (h *Handler) isAcquainted() bool {
	since := h.known.Load()
	return since > 0 && time.Since(time.UnixMilli(since)) > acquaintance
}

// toAnswer returns the sample that another instance wants, if it was not answered yet.
func (r *runner) toAnswer(in incoming) (w wanted, ok bool) {
	if in.wanted == nil || in.wanted.By == r.id || in.wanted.ID == r.answered {
		return w, false
	}
	r.answered = in.wanted.ID
	return *in.wanted, true
}

// answer writes what this instance knows. If that fails, it is missing.
func (h *Handler) answer(ctx context.Context, w wanted) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	p := h.options.Sample.Part(w.Rule)
	p.Name = h.instance
	text := p.Encode(min(w.Bytes, maxAnswer))
	h.encoded.Add(1)
	_ = h.fleet.client.Set(ctx, h.fleet.answerKey(w.ID, h.id), text, answerTTL).Err()
}

func (f *fleet) answerKey(want, id string) string { return f.prefix + "sample:" + want + ":" + id }

// errBusy is returned while another instance wants a sample.
var errBusy = errors.New("another instance runs a what-if")

// want asks all instances for a sample, when no other instance does. It sets the maximum size of
// each answer.
func (f *fleet) want(ctx context.Context, w *wanted, acquainted bool) error {
	ctx, cancel := context.WithTimeout(ctx, wantTimeout)
	defer cancel()
	instances := int64(manyInstances)
	if acquainted {
		var err error
		if instances, err = f.client.ZCard(ctx, f.prefix+"instances").Result(); err != nil {
			return err
		}
	}
	w.Bytes = min(maxAnswer, maxAnswers/int(max(instances, 1)))
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	for {
		err := f.client.SetArgs(ctx, f.prefix+"wanted", text,
			redis.SetArgs{Mode: "NX", TTL: watchedTTL}).Err()
		if err == nil {
			break
		}
		if !errors.Is(err, redis.Nil) {
			return err
		}
		if !pause(ctx) {
			return errBusy
		}
	}
	return f.client.Set(ctx, f.prefix+"watched", 1, watchedTTL).Err()
}

func (f *fleet) unwant(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
	defer cancel()
	_ = f.client.Del(ctx, f.prefix+"wanted").Err() // else it expires
}

// pause waits a little, and reports false if ctx ends.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(gatherPause):
		return true
	}
}

// gather puts the answers to w into parts by the ids of instances, until all known instances have
// answered or ctx ends. It returns the names of those that have not.
func (f *fleet) gather(
	ctx context.Context, w *wanted, acquainted func() bool, parts map[string]sample.Part,
) (missing []string, err error) {
	began := time.Now()
	left, err := f.collect(ctx, w, parts)
	for err == nil {
		enough := acquainted() || time.Since(began) > acquaintance
		if len(left) == 0 && enough || !pause(ctx) {
			break
		}
		var now []string
		if now, err = f.collect(ctx, w, parts); err == nil {
			left = now
		}
	}
	if err != nil && ctx.Err() == nil || len(left) == 0 {
		return nil, err
	}
	// The last collect may have read some of them before ctx ended.
	left = slices.DeleteFunc(left, func(id string) bool { _, ok := parts[id]; return ok })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
	defer cancel()
	return f.names(ctx, left)
}

// collect reads the answers that are there, and returns the ids of the others.
func (f *fleet) collect(
	ctx context.Context, w *wanted, parts map[string]sample.Part,
) (left []string, err error) {
	ids, err := f.client.ZRange(ctx, f.prefix+"instances", 0, maxInstances).Result()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, done := parts[id]; done || id == w.By {
			continue
		}
		text, err := f.client.Get(ctx, f.answerKey(w.ID, id)).Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
		p, wrong := sample.Decode(text)
		if err != nil || wrong != nil {
			left = append(left, id)
			continue
		}
		parts[id] = p
	}
	return left, nil
}

// names returns the names of the instances that still run.
func (f *fleet) names(ctx context.Context, ids []string) (names []string, err error) {
	for _, id := range ids {
		text, err := f.client.Get(ctx, f.prefix+"now:"+id).Bytes()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var s snapshot
		if json.Unmarshal(text, &s) == nil && s.Instance.Name != "" {
			names = append(names, s.Instance.Name)
		} else {
			names = append(names, id)
		}
	}
	return names, nil
}
