package main

import (
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/internal/snippets"
	"github.com/headgate/headgate/redisstore"
)

// Over 150 ms, the home decides first, and later a lease.
func TestStore(t *testing.T) {
	const roundTrip = 150 * time.Millisecond
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	proxy.Delay(roundTrip)
	home, err := redisstore.Open("redis://" + proxy.Addr + "?dial_timeout=1s&read_timeout=1s")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	store, err := newStore(home, func() int { return 6 })
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := headgate.NewLimiter(store, headgate.PerMinute(3000))
	if err != nil {
		t.Fatal(err)
	}
	// awaitDecision asks until a decision that is not of a share was near or far.
	awaitDecision := func(near bool) {
		for {
			began := time.Now()
			d, err := limiter.Allow(t.Context(), "client:1")
			if err != nil || !d.Allowed() {
				t.Fatalf("%+v, %v", d, err)
			}
			if !d.Degraded() && near == (time.Since(began) < roundTrip) {
				return
			}
		}
	}
	awaitDecision(false)
	var all sync.WaitGroup
	for range 20 { // so many that the client is busy
		all.Go(func() { awaitDecision(false) })
	}
	all.Wait()
	awaitDecision(true)
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../../docs/regions.md", "regions", "main.go")
}
