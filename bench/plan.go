package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// A plan is how much is measured.
type plan struct {
	rounds int

	keys   int // uniform and Zipf in memory, Zipf in Redis
	hot    int // passes over the hot key's 1024 takes
	denied int // passes over the drained keys

	clients int // uniform through middlewares

	crowd time.Duration // that callers wait at a gate

	redisKeys int           // uniform in Redis
	weighKeys int           // resident in Redis while weighed
	levels    []int         // callers of Redis
	sharers   []int         // callers in the experiment about batches
	span      time.Duration // of a Redis cell in a round

	rates []int         // decisions a second of the paced loads
	paced time.Duration // of a paced cell in a round

	contenders choice // those to measure, and whom ratios are taken against
	workloads  choice // those to run
}

func fullPlan(rounds int) plan {
	return plan{
		rounds: rounds, keys: 1_000_000, hot: 4096, denied: 2000, clients: 100_000, crowd: 2 * time.Second,
		redisKeys: 10_000, weighKeys: 10_000, span: time.Second,
		levels: []int{1, 16, 64, 256, 1024}, sharers: []int{1, 16, 64, 256},
		rates: []int{5000, 20_000}, paced: time.Second,
	}
}

func quickPlan() plan {
	return plan{
		rounds: 1, keys: 20_000, hot: 32, denied: 20, clients: 2000, crowd: 250 * time.Millisecond,
		redisKeys: 1000, weighKeys: 200, span: 20 * time.Millisecond,
		levels: []int{1, 16, 64, 256, 1024}, sharers: []int{1, 64},
		rates: []int{5000, 20_000}, paced: 50 * time.Millisecond,
	}
}

// deniedKeys is how many drained keys the denial workload asks for.
const deniedKeys = 1000

// memoryWorkloads are the patterns that memory contenders run.
func (p plan) memoryWorkloads() []*Workload {
	return []*Workload{hotKey(p.hot), uniform(p.keys), zipf(p.keys, p.keys, 1), denial(deniedKeys, p.denied)}
}

// memory measures the contenders of this process.
func (p plan) memory(ctx context.Context, progress io.Writer, out *Results) error {
	run := memoryRun{store: memoryStore, field: p.contenders.entries(memoryStore, memoryField()), workloads: p.workloads.workloads(p.memoryWorkloads()), out: out}
	if err := verifyAll(run.workloads); err != nil {
		return err
	}
	return p.eachRound(ctx, progress, memoryStore, run.round)
}

// httpWorkloads are the patterns that middlewares run: one client, and many.
func (p plan) httpWorkloads() []*Workload {
	ws := []*Workload{hotKey(max(p.hot/8, 1)), uniform(p.clients)}
	for _, w := range ws {
		w.Seq, w.Weigh = w.Seq.addressed(), false
	}
	return ws
}

// http measures the middlewares.
func (p plan) http(ctx context.Context, progress io.Writer, out *Results) error {
	run := memoryRun{store: httpStore, field: p.contenders.entries(httpStore, httpField()), workloads: p.workloads.workloads(p.httpWorkloads()), out: out}
	if err := verifyAll(run.workloads); err != nil {
		return err
	}
	return p.eachRound(ctx, progress, httpStore, run.round)
}

// gate measures those that make callers wait.
func (p plan) gate(ctx context.Context, progress io.Writer, out *Results) error {
	run := gateRun{field: p.contenders.entries(gateStore, gateField()), pass: hotKey(p.hot), span: p.crowd, out: out}
	if err := run.pass.Verify(); err != nil {
		return err
	}
	return p.eachRound(ctx, progress, gateStore, run.round)
}

// eachRound calls round for each round, and says on progress where it is.
func (p plan) eachRound(ctx context.Context, progress io.Writer, store string, round func(n int) error) error {
	for n := range p.rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(progress, "%s: round %d of %d\n", store, n+1, p.rounds)
		if err := round(n); err != nil {
			return err
		}
	}
	return nil
}

// verifyAll holds every workload to its claim.
func verifyAll(ws []*Workload) error {
	for _, w := range ws {
		if err := w.Verify(); err != nil {
			return err
		}
	}
	return nil
}
