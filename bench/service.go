package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// The contenders of the service part.
const (
	upstreamName   = "envoyproxy/ratelimit"
	grpcFloorName  = "grpc-go alone"
	takeHTTPName   = "headgate, /v1/take"
	grantedName    = "10k random keys"
	localCacheName = "1k keys, denied, local cache"
)

// serviceLoad is one workload on servers, the numbers of callers, and the contenders.
type serviceLoad struct {
	Workload

	callers    []int
	field      []serviceEntry
	localCache bool
}

// serviceEntry is a server to measure.
type serviceEntry struct {
	name string
	run  func(*serviceRun, context.Context, serviceLoad) (*serviceProcess, Contender, error)
}

// serviceField is the servers that answer Envoy's protocol, each with the same environment and
// the same file of limits; a server of grpc-go that decides nothing; and Headgate over HTTP.
func serviceField() []serviceEntry {
	return []serviceEntry{
		{headgateName, (*serviceRun).headgate},
		{upstreamName, (*serviceRun).upstream},
		{grpcFloorName, (*serviceRun).floor},
		{takeHTTPName, (*serviceRun).overHTTP},
	}
}

func (p plan) serviceLoads() []serviceLoad {
	granted := uniform(p.redisKeys, keyOf)
	granted.Name = grantedName
	denied := denial()
	denied.Name = localCacheName
	all := serviceField()
	return []serviceLoad{
		{granted, p.serviceCallers, all, false},
		{denied, []int{64}, all[:2], true},
	}
}

// serviceRun measures servers that share a Redis, one at a time.
type serviceRun struct {
	redis    redisServer
	programs programs
	span     time.Duration
	only     selection // of contenders
	out      *Results
}

func (r *serviceRun) round(ctx context.Context, loads []serviceLoad, n int) error {
	for _, load := range loads {
		for _, e := range shuffledServices(load.field, n) {
			if !r.only.has(e.name) {
				continue
			}
			if err := r.measure(ctx, load, e); err != nil {
				return fmt.Errorf("%s, %s: %w", e.name, load.Name, err)
			}
		}
	}
	return nil
}

// measure starts a server, takes each key once, and lets each number of callers ask.
func (r *serviceRun) measure(ctx context.Context, load serviceLoad, e serviceEntry) (err error) {
	if err := r.redis.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	server, client, err := e.run(r, ctx, load)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeContender(client), server.stop()) }()
	if err := takeTogether(ctx, client, load.Seq); err != nil {
		return err
	}
	for _, callers := range load.callers {
		sample, err := r.sample(ctx, load, server, client, callers)
		if err != nil {
			return fmt.Errorf("%d callers: %w", callers, err)
		}
		r.out.Add(Cell{servicePart, load.Name, callers, e.name}, sample)
	}
	return nil
}

func (r *serviceRun) sample(
	ctx context.Context, load serviceLoad, server *serviceProcess, c Contender, callers int,
) (Sample, error) {
	runtime.GC()
	redis, err := r.redis.cpuMicros(ctx)
	if err != nil {
		return nil, err
	}
	used, err := server.cpuMicros()
	if err != nil {
		return nil, err
	}
	sample, answers, err := runClosedLoop(ctx, c, load.Seq, callers, r.span)
	if err != nil {
		return nil, err
	}
	usedAfter, err := server.cpuMicros()
	if err != nil {
		return nil, err
	}
	redisAfter, err := r.redis.cpuMicros(ctx)
	if err != nil {
		return nil, err
	}
	sample[ServerCPU] = (usedAfter - used) / answers.all()
	sample[RedisCPU] = (redisAfter - redis) / answers.all()
	return sample, answers.check(load.Denied)
}

// shuffledServices is the field in another order in each round.
func shuffledServices(field []serviceEntry, n int) []serviceEntry {
	order := random(uint64(n)).Perm(len(field))
	es := make([]serviceEntry, len(field))
	for i, at := range order {
		es[i] = field[at]
		if n == 0 {
			es[i] = field[i]
		}
	}
	return es
}

func (p plan) service(ctx context.Context, to progress, out *Results) error {
	return withPrograms(ctx, programs.build, func(built programs) error {
		return p.measureServices(ctx, to, built, out)
	})
}

func (p plan) measureServices(
	ctx context.Context, to progress, built programs, out *Results,
) error {
	loads, consoles := p.serviceLoads(), p.consoleLoads()
	return withRedis(ctx, func(s redisServer) error {
		run := serviceRun{s, built, p.serviceSpan, p.contenders, out}
		return p.eachRound(ctx, to, func(n int) error {
			if err := run.round(ctx, loads, n); err != nil {
				return err
			}
			for _, load := range consoles {
				if err := run.console(ctx, load, n); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
