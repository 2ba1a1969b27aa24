package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// usageName is the workload of which MEMORY USAGE is taken.
const usageName = "1k keys, 10 takes each"

// redisLoad is one workload on Redis, the numbers of callers, and the contenders.
type redisLoad struct {
	Workload

	callers []int
	field   []Entry
}

// redisRun measures contenders that share a Redis.
type redisRun struct {
	server redisServer
	span   time.Duration
	loads  []redisLoad
	only   selection // of contenders
	out    *Results
}

func (r redisRun) round(ctx context.Context, n int) error {
	for _, load := range r.loads {
		for _, callers := range load.callers {
			for _, e := range shuffled(r.only.entries(load.field), n*(1+callers)) {
				if err := r.measure(ctx, e, load.Workload, callers); err != nil {
					return fmt.Errorf("%s, %s, %d callers: %w", e.Name, load.Name, callers, err)
				}
			}
		}
	}
	for _, e := range r.only.entries(redisField()) {
		if err := r.weigh(ctx, e); err != nil {
			return fmt.Errorf("%s, %s: %w", e.Name, usageName, err)
		}
	}
	return nil
}

// measure runs callers in a closed loop, and checks the answers and the number of keys.
func (r redisRun) measure(ctx context.Context, e Entry, w Workload, callers int) error {
	return r.server.warm(ctx, e, w, w.redisTerms(), func(c Contender) error {
		runtime.GC()
		before, err := r.server.cpuMicros(ctx)
		if err != nil {
			return err
		}
		sample, answers, err := runClosedLoop(ctx, c, w.Seq, callers, r.span)
		if err != nil {
			return err
		}
		after, err := r.server.cpuMicros(ctx)
		if err != nil {
			return err
		}
		sample[RedisCPU] = (after - before) / answers.all()
		r.out.Add(Cell{redisPart, w.Name, callers, e.Name}, sample)
		return answers.check(w.Denied)
	})
}

// weigh measures the memory of a key in Redis.
func (r redisRun) weigh(ctx context.Context, e Entry) error {
	w, takes := uniform(1000, keyOf), 10
	terms := Terms{Burst: int64(takes), Every: refill}
	return r.server.warm(ctx, e, w, terms, func(c Contender) error {
		for range takes - 1 {
			if err := takeTogether(ctx, c, w.Seq); err != nil {
				return err
			}
		}
		usage, err := r.server.usage(ctx)
		bytes := float64(usage) / float64(w.Keys)
		r.out.Add(Cell{redisPart, usageName, 0, e.Name}, Sample{Bytes: bytes})
		return err
	})
}

// warm opens e on an empty database, takes each key once, calls measure, and checks that there
// are as many keys in Redis as were taken.
func (s redisServer) warm(
	ctx context.Context, e Entry, w Workload, t Terms, measure func(Contender) error,
) error {
	if err := s.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	c, err := e.Open(Setup{Terms: t, Keys: w.Keys, Addr: s.Addr})
	if err != nil {
		return err
	}
	err = takeTogether(ctx, c, w.Seq)
	if err == nil {
		err = measure(c)
	}
	if err == nil {
		err = s.checkSize(ctx, e.redisKeys(w.Keys), e.ExtraKeys)
	}
	return errors.Join(err, closeContender(c))
}

// takeTogether makes one pass through seq by 64 callers, all granted, so that connections are
// open, scripts are loaded and keys are there.
func takeTogether(ctx context.Context, c Contender, seq Sequence) error {
	const callers = 64
	ctx = context.WithoutCancel(ctx)
	var wg sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		wg.Go(func() {
			a, err := takeAll(ctx, c, seq, seq.Len()*i/callers, seq.Len()*(i+1)/callers, 1)
			errs[i] = errors.Join(err, a.check(false))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
