package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
)

// fleet is a script of its own.
var fleet = sync.OnceValue(func() redisscript.Script { return redisscript.New(file("fleet")) })

// beats is how many intervals an instance counts after its last beat, and a number after a smaller one was heard.
const beats = 3

const (
	defaultEvery = 5 * time.Second
	leaveIn      = time.Second
)

// FleetOptions are the settings of a [Fleet]. The zero value is good, but for instances that are to grant their
// share before the first beat was heard.
type FleetOptions struct {
	// Every is the time between two beats, the same for all instances: at least a millisecond. Default: 5 s.
	Every time.Duration

	// Least is the number to go by until the first beat was heard, and never less than
	// that: the instances that are started together. Default: none, and the number is unknown until then.
	Least int
}

// Fleet counts the instances that share a store. Each announces itself to Redis by a beat, one round
// trip in each interval, and learns how many there are, by the clock of the server, whatever those of the
// instances say and also if it keeps TIME from scripts: for the shares of fallback.Store.
//
// An instance that was started is counted by the others after their next beat; one that died no more
// after three intervals in the server, three in the others, and a beat at the end of each. Who beats needs the commands ZADD, ZREM, ZREMRANGEBYSCORE, ZRANGE, ZCARD,
// PEXPIRE and PTTL besides those of a Store, on the key prefix + "fleet".
type Fleet struct {
	store     *Store
	options   FleetOptions
	id        string
	stop      context.CancelFunc
	done      chan struct{}
	instances atomic.Int64

	mu    sync.Mutex
	heard heard
	err   error
}

var errUnheard = errors.New("redisstore: no beat was heard yet")

// NewFleet joins the instances that share s, which are those with its server and prefix, and beats in
// a goroutine until [Fleet.Close]. It returns without an answer of the server; call
// [Fleet.Beat] to have one. It returns a headgate.InvalidError if s is nil or a number is out of range.
func NewFleet(s *Store, o FleetOptions) (*Fleet, error) {
	switch {
	case s == nil:
		return nil, &headgate.InvalidError{Field: "store", Value: "nil", Want: "one made by New or Open"}
	case o.Every != 0 && o.Every < time.Millisecond:
		return nil, &headgate.InvalidError{Field: "Every", Value: o.Every.String(), Want: "at least 1ms, or 0 for 5s"}
	case o.Every > 24*time.Hour:
		return nil, &headgate.InvalidError{Field: "Every", Value: o.Every.String(), Want: "at most 24h"}
	case o.Least < 0:
		return nil, &headgate.InvalidError{Field: "Least", Value: strconv.Itoa(o.Least), Want: "at least 1, or 0 for a number that is unknown at first"}
	}
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &Fleet{store: s, options: o, id: rand.Text(), stop: stop, done: make(chan struct{}), err: errUnheard}
	f.instances.Store(int64(o.Least))
	go f.run(ctx)
	return f, nil
}

// Instances is how many there are, this one among them: the largest number that it was in the three intervals
// before the last beat, because a server that lost what it knew hears of all again within an interval; while the server
// does not answer, or goes on to forget this instance from beat to beat, the last one known. It is 0, unknown, until the first beat was heard, if there is no
// Least: fallback.Store grants nothing by a share then.
func (f *Fleet) Instances() int { return int(f.instances.Load()) }

// Err is why the last beat failed, or nil if it was heard. Before the first it is an error, too.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Beat announces this instance now, and counts: what is done in each interval, for who wants to know
// before the first. After Close it joins again, until it is forgotten.
func (f *Fleet) Beat(ctx context.Context) error {
	alive, forgotten, err := f.tell(ctx, beats*f.options.Every)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err == nil {
		if forgotten { // and so may be others, who have not beaten since
			alive = max(alive, f.instances.Load())
		}
		most := f.heard.hear(alive, time.Now(), beats*f.options.Every)
		f.instances.Store(max(most, int64(f.options.Least), 1))
	}
	return err
}

// Close leaves the fleet at once, and ends the goroutine. If the server does not hear it within a
// second, which is the error, the others count this instance for three intervals.
func (f *Fleet) Close() error {
	f.stop()
	<-f.done
	ctx, cancel := context.WithTimeout(context.Background(), leaveIn)
	defer cancel()
	_, _, err := f.tell(ctx, 0)
	return err
}

func (f *Fleet) run(ctx context.Context) {
	defer close(f.done)
	ticker := time.NewTicker(f.options.Every)
	defer ticker.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, f.options.Every)
		f.beat(within)
		cancel()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// beat is Beat for nobody in particular: Err tells what came of it, also if a hook of the
// client panicked.
func (f *Fleet) beat(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.err = fmt.Errorf("redisstore: a hook of the client panicked: %v", p)
		}
	}()
	_ = f.Beat(ctx)
}

// tell says for how long this instance counts from now, and hears how many there are, and whether the
// server did not know of it.
func (f *Fleet) tell(ctx context.Context, life time.Duration) (alive int64, forgotten bool, err error) {
	s := f.store
	numbers, err := fleet().Run(ctx, s.client, []string{s.prefix + "fleet"}, []any{f.id, (life + time.Millisecond - 1).Milliseconds()})
	if err != nil || len(numbers) != 2 {
		return 0, false, redisscript.Explain("redisstore", err, advices(s.prefix, fleetCommands))
	}
	return numbers[0], numbers[1] == 1, nil
}

const fleetCommands = "EVALSHA, EVAL, ZADD, ZREM, ZREMRANGEBYSCORE, ZRANGE, ZCARD, PEXPIRE, PTTL and DEL"
