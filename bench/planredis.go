package main

import (
	"context"
	"io"
)

// redisWorkloads are the patterns that Redis contenders run.
func (p plan) redisWorkloads() []*Workload {
	return []*Workload{uniform(p.redisKeys), hotKey(1), zipf(p.keys, p.keys, 1), denial(deniedKeys, 1)}
}

// redis measures the contenders that ask a Redis started for this purpose, and what their
// keys take in it.
func (p plan) redis(ctx context.Context, progress io.Writer, out *Results) error {
	run := p.closedLoops(redisStore, redisLoopField(), p.redisWorkloads(), p.levels, out)
	return withRedis(ctx, func(server *redisServer) error {
		run.server = server
		if err := p.closedRounds(ctx, progress, run); err != nil {
			return err
		}
		if !p.workloads.has(weighName(p.weighKeys)) {
			return nil
		}
		return run.weighAll(ctx, p.weighKeys)
	})
}

// batching measures the ways in which callers can share questions to Redis.
func (p plan) batching(ctx context.Context, progress io.Writer, out *Results) error {
	run := p.closedLoops(batchingStore, batchingField(), []*Workload{uniform(p.redisKeys)}, p.sharers, out)
	return withRedis(ctx, func(server *redisServer) error {
		run.server = server
		return p.closedRounds(ctx, progress, run)
	})
}

// pacedLoads are the loads of the paced part.
func (p plan) pacedLoads() (ls []*pacedLoad) {
	for _, rate := range p.rates {
		if l := newPacedLoad(uniform(p.redisKeys), rate, p.paced); p.workloads.has(l.Name) {
			ls = append(ls, l)
		}
	}
	return ls
}

// pace measures the contenders that ask Redis under paced loads.
func (p plan) pace(ctx context.Context, progress io.Writer, out *Results) error {
	run := pacedRun{field: p.contenders.entries(pacedStore, pacedField()), loads: p.pacedLoads(), out: out}
	for _, l := range run.loads {
		if err := l.Verify(); err != nil {
			return err
		}
	}
	return withRedis(ctx, func(server *redisServer) error {
		run.server = server
		return p.eachRound(ctx, progress, pacedStore, func(n int) error { return run.round(ctx, n) })
	})
}

// closedLoops is a run of what the plan chooses.
func (p plan) closedLoops(store string, field []Entry, ws []*Workload, callers []int, out *Results) redisRun {
	return redisRun{
		store: store, field: p.contenders.entries(store, field), workloads: p.workloads.workloads(ws),
		levels: callers, span: p.span, out: out,
	}
}

// closedRounds makes the rounds of a run.
func (p plan) closedRounds(ctx context.Context, progress io.Writer, run redisRun) error {
	if err := verifyAll(run.workloads); err != nil {
		return err
	}
	return p.eachRound(ctx, progress, run.store, func(n int) error { return run.round(ctx, n) })
}

// withRedis lends measure a Redis of its own.
func withRedis(ctx context.Context, measure func(*redisServer) error) error {
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	return measure(server)
}
