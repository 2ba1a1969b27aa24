package pause

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	ownKeys      = 1 << 16 // of which a process keeps its own pauses
	firstBackOff = time.Second
	lastBackOff  = time.Minute
)

// own keeps the pauses of one process, by the hashes of their keys. When it is full, a new pause
// takes the place of any other, which is then in the store only.
type own struct {
	mu   sync.Mutex
	seed maphash.Seed
	kept map[uint64]kept
}

// kept is the end of a pause, and how long the key backed off last.
type kept struct {
	end     time.Time
	backOff time.Duration
}

func (o *own) init() { o.seed, o.kept = maphash.MakeSeed(), map[uint64]kept{} }

// change changes what is kept of key, and forgets it if change reports false.
func (o *own) change(key string, change func(k *kept, paused bool) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := maphash.String(o.seed, key)
	k, known := o.kept[h]
	if !change(&k, time.Now().Before(k.end)) {
		delete(o.kept, h)
		return
	}
	if !known && len(o.kept) >= ownKeys {
		for other := range o.kept {
			delete(o.kept, other)
			break
		}
	}
	o.kept[h] = k
}

// left returns what is left of the pause of key.
func (o *own) left(key string) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(time.Until(o.kept[maphash.String(o.seed, key)].end), 0)
}

// extend makes the pause of key last for d from now, unless it lasts longer already.
func (o *own) extend(key string, d time.Duration) {
	end := time.Now().Add(d)
	o.change(key, func(k *kept, _ bool) bool {
		if end.After(k.end) {
			k.end = end
		}
		return true
	})
}

// backOff returns the pause of a key whose request was refused without a time: a second, and twice
// as long after each refusal that follows, up to most. It returns 0 during a pause: then the
// request was probably sent before it.
func (o *own) backOff(key string, most time.Duration) (d time.Duration) {
	o.change(key, func(k *kept, paused bool) bool {
		if !paused {
			d = min(max(2*k.backOff, firstBackOff), most)
			k.backOff, k.end = d, time.Now().Add(d)
		}
		return true
	})
	return d
}

// passed ends the back-off of a key whose request was not refused, unless a pause lasts: then the
// request was probably sent before it.
func (o *own) passed(key string) {
	o.change(key, func(_ *kept, paused bool) bool { return paused })
}
