package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"
)

// The networks by their delay each way (in a zone, between zones), and the decisions a second.
var (
	delays = []time.Duration{
		150 * time.Microsecond, 450 * time.Microsecond, 1200 * time.Microsecond,
	}
	rates = []int{500, 2000, 6000}
)

// networkKeys is how many keys are taken from over a network.
const networkKeys = 2000

// networkWarmUp is how long calls are made before those that are measured.
const networkWarmUp = 200 * time.Millisecond

// networkLoad is a network, the decisions a second over it, and the contenders.
type networkLoad struct {
	name  string
	delay time.Duration // each way
	rates []int
	field []Entry
}

func (p plan) networkLoads() (loads []networkLoad) {
	for _, delay := range p.delays {
		loads = append(loads, networkLoad{eachWay(delay), delay, p.rates, networkField()})
	}
	const perClient = 1000 // decisions a second
	var fleet []Entry
	for _, e := range networkField()[:2] {
		fleet = append(fleet, fleetOf(p.fleet, e))
	}
	return append(loads, networkLoad{
		fmt.Sprintf("%s, %d clients", eachWay(fleetDelay), p.fleet), fleetDelay,
		[]int{p.fleet * perClient}, fleet,
	})
}

// fleetDelay is the network between a fleet and its Redis.
const fleetDelay = 450 * time.Microsecond

func eachWay(delay time.Duration) string {
	return strings.ReplaceAll(delay.String(), "µ", "u") + " each way"
}

// networkRun measures contenders over networks to one Redis.
type networkRun struct {
	server redisServer
	span   time.Duration
	loads  []networkLoad
	only   selection // of contenders
	out    *Results
}

func (r networkRun) round(ctx context.Context, n int) error {
	for _, load := range r.loads {
		err := r.server.withDelay(ctx, load.delay, func(far redisServer) error {
			for _, rate := range load.rates {
				for _, e := range shuffled(r.only.entries(load.field), n*rate) {
					sample, err := r.measure(ctx, far, e, rate, n)
					if err != nil {
						return fmt.Errorf("%s, %d a second: %w", e.Name, rate, err)
					}
					r.out.Add(Cell{networkPart, load.name, rate, e.Name}, sample)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", load.name, err)
		}
	}
	return nil
}

// measure makes calls at times and for keys that are the same for each contender of a round.
func (r networkRun) measure(
	ctx context.Context, far redisServer, e Entry, rate, n int,
) (sample Sample, err error) {
	w := uniform(networkKeys, keyOf)
	err = far.warm(ctx, e, w, w.redisTerms(), func(c Contender) error {
		early := poisson(uint64(n), rate, networkWarmUp, w.Keys)
		if _, _, err := runOpenLoop(ctx, c, w.Seq, early); err != nil {
			return err
		}
		runtime.GC()
		before, err := far.cpuMicros(ctx)
		if err != nil {
			return err
		}
		var answers Answers
		calls := poisson(uint64(n), rate, r.span, w.Keys)
		sample, answers, err = runOpenLoop(ctx, c, w.Seq, calls)
		if err != nil {
			return err
		}
		after, err := far.cpuMicros(ctx)
		sample[RedisCPU] = (after - before) / answers.all()
		return errors.Join(err, answers.check(false))
	})
	return sample, err
}

func (p plan) network(ctx context.Context, to progress, out *Results) error {
	return withRedis(ctx, func(s redisServer) error {
		run := networkRun{s, p.networkSpan, p.networkLoads(), p.contenders, out}
		return p.eachRound(ctx, to, func(n int) error { return run.round(ctx, n) })
	})
}

// fleetOf is n of e at once, each with connections of its own.
func fleetOf(n int, e Entry) Entry {
	open := e.Open
	e.Open = func(s Setup) (Contender, error) {
		var all fleet
		for range n {
			c, err := open(s)
			if err != nil {
				return nil, errors.Join(err, all.Close())
			}
			all = append(all, c)
		}
		return all, nil
	}
	return e
}

// fleet is the clients of one Redis in many processes. A random one makes each call.
type fleet []Contender

func (f fleet) Take(ctx context.Context, key string) (bool, error) {
	return f[rand.IntN(len(f))].Take(ctx, key)
}

func (f fleet) Close() (err error) {
	for _, c := range f {
		err = errors.Join(err, closeContender(c))
	}
	return err
}
