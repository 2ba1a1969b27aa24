package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// The parts of a run, by the names of their flag.
const (
	memoryPart  = "memory"
	httpPart    = "http"
	redisPart   = "redis"
	networkPart = "network"
	scriptPart  = "script"
	replayPart  = "replay"
	servicePart = "service"
)

// part is what is measured together and reported in one table.
type part struct {
	name, title, about string
	bases              []string // contenders that ratios are taken against: the first that ran
	run                func(plan, context.Context, progress, *Results) error
}

var parts = []part{
	{memoryPart, "Memory", "Callers are goroutines, each on a core of its own.",
		[]string{xTimeRateName, goLimiterName}, plan.memory},
	{httpPart, "Middleware", "The limit of each client address, with all header fields.",
		[]string{httprateName}, plan.http},
	{redisPart, "Redis", "Callers ask as fast as they can. \"redis us\" is the server's CPU time " +
		"for a decision.", []string{redisRateName}, plan.redis},
	{networkPart, "Network", "A proxy delays every byte, each way. Callers are decisions a " +
		"second, at random times (Poisson), with contexts that can be cancelled. Latencies count " +
		"from the planned time. \"client us\" is the CPU time of the client's process for a " +
		"decision, without the thread that makes the calls.", []string{rueidisName}, plan.network},
	{scriptPart, "Script", "Callers are the requests of a batch.",
		[]string{prototypeName}, plan.script},
	{servicePart, "Service", "Callers ask over 4 gRPC connections, or over HTTP. \"server us\" " +
		"is the CPU time of the rate limit server for a decision. Servers with and without the " +
		"console are measured in turns.", []string{upstreamName, consoleOffName}, plan.service},
	{replayPart, "Replay", "Bytes are the peak of memory for each line more.", nil, plan.replay},
}

func partNames() string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// plan is how much is measured.
type plan struct {
	rounds      int
	memoryKeys  int
	hotPasses   int // through the 1024 takes of the hot key
	clients     int
	redisKeys   int
	callers     []int
	span        time.Duration // of each contender on Redis, in a round
	decisions   int           // of each script, in a round
	replayLines int
	contenders  selection

	serviceCallers []int
	serviceSpan    time.Duration

	delays      []time.Duration // of networks, each way
	rates       []int           // of calls over each, a second
	fleet       int             // clients that share a Redis
	networkSpan time.Duration   // of each contender at each rate, in a round
}

func (o *options) plan() plan {
	p := plan{
		rounds: o.rounds, memoryKeys: 1_000_000, hotPasses: 4096, clients: 100_000,
		redisKeys: 10_000, callers: []int{1, 8, 16, 64, 256, 1024},
		span: 500 * time.Millisecond, decisions: 25_600,
		replayLines: 1_000_000, serviceCallers: []int{1, 16, 64, 256}, serviceSpan: 2 * time.Second,
		delays: delays, rates: rates, fleet: 10, networkSpan: 2 * time.Second,
	}
	if o.quick {
		p = plan{
			rounds: 1, memoryKeys: 10_000, hotPasses: 8, clients: 1000, redisKeys: 1000,
			callers: p.callers, span: 20 * time.Millisecond, decisions: 2560, replayLines: 10_000,
			serviceCallers: []int{1, 64}, serviceSpan: 100 * time.Millisecond,
			delays: delays[:1], rates: rates[:1], fleet: 2, networkSpan: 100 * time.Millisecond,
		}
	}
	if len(o.callers) > 0 {
		p.callers = o.callers
	}
	p.contenders = o.contenders
	return p
}

// cells returns what a run of all parts and contenders measures. Some contenders leave some out.
func (p plan) cells() []Cell {
	var cells []Cell
	add := func(part, workload string, callers []int, field []Entry) {
		for _, n := range callers {
			for _, e := range field {
				cells = append(cells, Cell{part, workload, n, e.Name})
			}
		}
	}
	for _, l := range p.redisLoads() {
		add(redisPart, l.Name, l.callers, l.field)
	}
	for _, l := range p.networkLoads() {
		add(networkPart, l.name, l.rates, l.field)
	}
	add(redisPart, usageName, []int{0}, redisField())
	add(memoryPart, hotKeyName, coreCounts, memoryField())
	add(memoryPart, count(p.memoryKeys)+" random keys", coreCounts, memoryField())
	add(httpPart, hotKeyName, coreCounts, httpField())
	add(httpPart, count(p.clients)+" random keys", coreCounts, httpField())
	add(scriptPart, scriptName, batchSizes, []Entry{{Name: headgateName}, {Name: prototypeName}})
	for _, l := range p.serviceLoads() {
		for _, e := range l.field {
			add(servicePart, l.Name, l.callers, []Entry{{Name: e.name}})
		}
	}
	for _, l := range p.consoleLoads() {
		for _, w := range watchedField() {
			add(servicePart, l.Name, l.callers, []Entry{{Name: w.name}})
		}
	}
	add(replayPart, count(p.replayLines)+" lines", []int{0}, []Entry{{Name: headgateName}})
	return cells
}

// progress says which round of a part is running.
type progress struct {
	w    io.Writer
	part string
}

// eachRound calls round for each round.
func (p plan) eachRound(ctx context.Context, to progress, round func(n int) error) error {
	for n := range p.rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(to.w, "%s: round %d of %d\n", to.part, n+1, p.rounds)
		if err := round(n); err != nil {
			return err
		}
	}
	return nil
}

func (p plan) memory(ctx context.Context, to progress, out *Results) error {
	ws := []Workload{hotKey(p.hotPasses, keyOf), uniform(p.memoryKeys, keyOf)}
	run := inProcess{memoryPart, p.contenders.entries(memoryField()), ws, out}
	return p.inProcess(ctx, to, run)
}

func (p plan) http(ctx context.Context, to progress, out *Results) error {
	ws := []Workload{hotKey(max(p.hotPasses/8, 1), addressOf), uniform(p.clients, addressOf)}
	run := inProcess{httpPart, p.contenders.entries(httpField()), ws, out}
	return p.inProcess(ctx, to, run)
}

func (p plan) inProcess(ctx context.Context, to progress, run inProcess) error {
	for _, w := range run.workloads {
		if err := w.verify(); err != nil {
			return err
		}
	}
	return p.eachRound(ctx, to, run.round)
}

func (p plan) redisLoads() []redisLoad {
	return []redisLoad{
		{uniform(p.redisKeys, keyOf), p.callers, redisField()},
		{denial(), []int{64}, denyField()},
		{hotKey(1, keyOf), []int{64}, leaseField()},
	}
}

func (p plan) redis(ctx context.Context, to progress, out *Results) error {
	loads := p.redisLoads()
	for _, l := range loads {
		if err := l.verify(); err != nil {
			return err
		}
	}
	return withRedis(ctx, func(s redisServer) error {
		run := redisRun{s, p.span, loads, p.contenders, out}
		return p.eachRound(ctx, to, func(n int) error { return run.round(ctx, n) })
	})
}

func (p plan) script(ctx context.Context, to progress, out *Results) error {
	return withRedis(ctx, func(s redisServer) error {
		return p.eachRound(ctx, to, func(n int) error {
			return s.scriptRound(ctx, n, p.decisions, out)
		})
	})
}

func (p plan) replay(ctx context.Context, to progress, out *Results) error {
	return withPrograms(ctx, programs.buildHeadgate, func(built programs) error {
		if err := built.writeLogs(p.replayLines); err != nil {
			return err
		}
		return p.eachRound(ctx, to, func(int) error {
			return built.replayRound(ctx, p.replayLines, out)
		})
	})
}
