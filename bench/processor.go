package main

import (
	"context"
	"syscall"
)

// A processorTime is how long, in seconds, the Redis server and this process have kept
// processors busy so far.
type processorTime struct{ redis, own float64 }

// processorTime reads both. Contenders run one after the other, so what this process
// used between two readings belongs to the contender, and to the harness that asks it.
func (s *redisServer) processorTime(ctx context.Context) (t processorTime, err error) {
	if t.redis, err = s.cpuSeconds(ctx); err != nil {
		return t, err
	}
	var used syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	t.own = seconds(used.Utime) + seconds(used.Stime)
	return t, err
}

func seconds(t syscall.Timeval) float64 { return float64(t.Nano()) / 1e9 }

// into adds to a sample what one of takes decisions has used since before, in
// microseconds.
func (t processorTime) into(sample Sample, before processorTime, takes int64) {
	each := 1e6 / float64(takes)
	sample[RedisCPU] = (t.redis - before.redis) * each
	sample[OwnCPU] = (t.own - before.own) * each
}
