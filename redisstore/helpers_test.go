package redisstore_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// held is a hook that delays each call of a script until it is freed.
type held struct {
	counter
	arrived chan struct{} // receives when a call is delayed
	free    chan struct{} // lets one go, and all once it is closed
}

// holdUp lets no script of client go by itself.
func holdUp(client redis.UniversalClient) *held {
	h := &held{arrived: make(chan struct{}, 1000), free: make(chan struct{})}
	client.AddHook(h)
	return h
}

func (h *held) wait() {
	h.arrived <- struct{}{}
	<-h.free
}

func (h *held) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			h.wait()
		}
		return next(ctx, cmd)
	}
}

func (h *held) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if strings.HasPrefix(cmds[0].Name(), "eval") { // and not those that begin a connection
			h.wait()
		}
		return next(ctx, cmds)
	}
}

// patient is a store for which no batch is late.
func patient(t *testing.T, client redis.UniversalClient, o redisstore.Options) *redisstore.Store {
	t.Helper()
	o.Prefix = t.Name() + ":"
	s, err := redisstore.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	s.SetPatience(time.Hour)
	s.SkipProbe()
	return s
}

// answer is what a call returned.
type answer struct {
	ds  []headgate.Decision
	err error
}

// ask asks for rs in a goroutine of its own, and returns once they are in their queue, or refused.
func ask(ctx context.Context, s *redisstore.Store, rs ...headgate.Request) <-chan answer {
	before := s.Stats().Callers
	answers := make(chan answer, 1)
	go func() {
		a := answer{ds: make([]headgate.Decision, len(rs))}
		a.err = s.TakeAll(ctx, rs, a.ds)
		answers <- a
	}()
	for s.Stats().Callers == before && len(answers) == 0 {
		runtime.Gosched()
	}
	return answers
}

// gated is a hook that delays the calls of some keys until those are freed.
type gated struct {
	counter
	keys map[string]chan struct{} // by what their names in Redis hold
	held chan string              // receives when a call is delayed
}

func (g *gated) wait(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		for key, free := range g.keys {
			if strings.Contains(cmd.String(), key) {
				g.held <- key
				<-free
			}
		}
	}
}

func (g *gated) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.wait(cmd)
		return next(ctx, cmd)
	}
}

func (g *gated) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		g.wait(cmds...)
		return next(ctx, cmds)
	}
}

// counter counts the commands that a client sends.
type counter struct{ sent atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// canceller cancels a context after the first script.
type canceller struct {
	counter
	cancel context.CancelFunc
}

func (c *canceller) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") {
			c.cancel()
		}
		return err
	}
}

// together counts the scripts that are under way at once.
type together struct {
	counter
	now, most atomic.Int64
}

func (g *together) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n := g.now.Add(1)
		defer g.now.Add(-1)
		for {
			if old := g.most.Load(); n <= old || g.most.CompareAndSwap(old, n) {
				return next(ctx, cmd)
			}
		}
	}
}
