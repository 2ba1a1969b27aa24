package ratelimiter_test

import (
	_ "embed"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/ratelimiter"
)

// guide is what other programs run on the same key, in whatever language.
//
//go:embed testdata/guide.lua
var guide string

// settings are what both sides use.
type settings struct {
	capacity int
	rate     float64
	interval time.Duration
}

func (s settings) config() ratelimiter.TokenBucketConfig {
	return ratelimiter.TokenBucketConfig{Capacity: s.capacity, RefillRate: s.rate, RefillInterval: s.interval}
}

// command is a call of the guide's script by a clock that shows at.
func (s settings) command(key string, at time.Time) []string {
	return []string{
		"EVAL", guide, "1", key, strconv.Itoa(s.capacity), floatText(s.rate), floatText(s.interval.Seconds()),
		floatText(float64(at.UnixMicro()) / 1e6),
	}
}

func floatText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// other asks by the guide's script: over a connection of its own.
func other(t *testing.T, server *redistest.Server, s settings, key string, at time.Time) (allowed bool, remaining int64) {
	t.Helper()
	answer, err := server.Do(t.Context(), s.command(key, at)...)
	if err != nil {
		t.Fatal(err)
	}
	return parseAnswer(t, answer)
}

// otherProcesses counts the calls of otherProcess.
var otherProcesses atomic.Int64

// otherProcess asks by redis-cli in one call of eight, where that is installed: each is a process.
func otherProcess(t *testing.T, server *redistest.Server, s settings, key string, at time.Time) (allowed bool, remaining int64) {
	t.Helper()
	cli, err := exec.LookPath("redis-cli")
	if err != nil || otherProcesses.Add(1)%8 != 0 {
		return other(t, server, s, key, at)
	}
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := exec.CommandContext(t.Context(), cli, append([]string{"-h", host, "-p", port}, s.command(key, at)...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return parseAnswer(t, string(answer))
}

func parseAnswer(t *testing.T, answer string) (allowed bool, remaining int64) {
	t.Helper()
	var granted int64
	if _, err := fmt.Sscan(answer, &granted, &remaining); err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	return granted == 1, remaining
}

// TestTurns lets this package and another process take from one key, by one clock, in
// random turns: each answers as the one bucket by definition.
func TestTurns(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for i, s := range []settings{
		{10, 1, time.Second},
		{5, 0.5, time.Second},
		{10, 2.5, 300 * time.Millisecond},
		{3, 1, 100 * time.Millisecond},
	} {
		random := rand.New(rand.NewPCG(2, uint64(i)))
		limiter, _, key := bucket(t, s.config())
		m := &model{capacity: big.NewRat(int64(s.capacity), 1), rate: new(big.Rat).SetFloat64(s.rate), interval: s.interval.Microseconds()}
		now := int64(1_700_000_000_123_457)
		for n := range 200 {
			allowed, remaining := m.take(now)
			at, by := time.UnixMicro(now), "this package"
			var gotAllowed bool
			var got int64
			if random.IntN(2) == 0 {
				v := takeAt(t, limiter, key, at)
				gotAllowed, got = v.Allowed, v.Remaining
			} else {
				gotAllowed, got = otherProcess(t, server, s, key, at)
				by = "the other"
			}
			if gotAllowed != allowed || got != remaining {
				t.Fatalf("%+v, call %d, by %s: %v, %d remaining; want %v, %d", s, n, by, gotAllowed, got, allowed, remaining)
			}
			now += random.Int64N(m.interval)
			if (now-m.since)%m.interval == 0 {
				now++ // the other's floats may be a tick late at the very edge
			}
		}
	}
}

// TestTurnsByTenths does so with numbers that floats cannot hold, which the other adds up on
// each call, so that it drifts by microseconds. At no time have both got more than one
// bucket gives, and in the end less by what the other's errors cost.
func TestTurnsByTenths(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := settings{3, 0.1, 100 * time.Millisecond}
	random := rand.New(rand.NewPCG(3, 3))
	limiter, _, key := bucket(t, s.config())
	start := int64(1_700_000_000_123_457)
	now, granted := start, map[string]int64{}
	most := func() int64 { return 3 + ((now-start)/100_000+1)/10 }
	for n := range 10_000 {
		var by string
		var allowed bool
		if random.IntN(4) == 0 {
			by, allowed = "this", takeAt(t, limiter, key, time.UnixMicro(now)).Allowed
		} else {
			by = "the other"
			allowed, _ = other(t, server, s, key, time.UnixMicro(now))
		}
		if allowed {
			granted[by]++
		}
		if sum := granted["this"] + granted["the other"]; sum > most() {
			t.Fatalf("call %d: %v granted; want at most %d in all", n, granted, most())
		}
		now += random.Int64N(300_000)
	}
	if sum := granted["this"] + granted["the other"]; sum < most()*8/10 || granted["this"] == 0 || granted["the other"] == 0 {
		t.Errorf("%v granted; want both, and about %d in all", granted, most())
	}
}

// TestClocks lets both ask in turns while the other's clock is ahead or behind: what they
// get together is what one bucket gives in the time that has passed and in the difference
// between the clocks, which counts once, and never for more than a full bucket.
func TestClocks(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := settings{10, 1, time.Second}
	for _, lead := range []time.Duration{0, time.Second, 3 * time.Second, 5 * time.Hour, -time.Second, -3 * time.Second, -5 * time.Hour} {
		for _, first := range []string{"this package", "the other"} {
			limiter, client, key := bucket(t, s.config())
			start := time.UnixMicro(1_700_000_000_500_000)
			granted, latest := 0, 0.0
			for n := range 800 {
				// 200 turns at each of four moments.
				at := start.Add(time.Duration(n/200) * 2 * time.Second)
				var allowed bool
				if (n%2 == 0) == (first == "this package") {
					allowed = takeAt(t, limiter, key, at).Allowed
				} else {
					allowed, _ = other(t, server, s, key, at.Add(lead))
				}
				if allowed {
					granted++
				}
				last, err := client.HGet(t.Context(), key, "last_refill").Float64()
				if err != nil || last < latest {
					t.Fatalf("last_refill went from %f to %f, error %v", latest, last, err)
				}
				latest = last
			}
			difference := min(int(lead.Abs()/s.interval), s.capacity)
			if least, most := s.capacity+6, s.capacity+6+difference; granted < least || granted > most {
				t.Errorf("the other is ahead by %s, first came %s: %d granted; want %d to %d", lead, first, granted, least, most)
			}
		}
	}
}

// TestOldTimestamps is the lesson of two callers one second apart who took 20,000 of 20,000
// from a bucket of 10: here the callers bring the clocks, of a server that has none.
func TestOldTimestamps(t *testing.T) {
	limiter, _, key := bucket(t, ratelimiter.TokenBucketConfig{})
	at, granted := time.Unix(1_700_000_000, 0), 0
	for n := range 4000 {
		if takeAt(t, limiter, key, at.Add(time.Duration(n%2)*time.Second)).Allowed {
			granted++
		}
	}
	if granted != 11 {
		t.Errorf("%d granted; want 10, and one for the second between them", granted)
	}
}

// TestFarAhead comes to a bucket that was emptied by a clock hours ahead. The answer
// is to wait until the key ends, not for hours, and the request does not put that end off.
func TestFarAhead(t *testing.T) {
	server := redistest.Shared(t)
	s := settings{10, 1, time.Second}
	limiter, client, key := bucket(t, s.config())
	at := client.Time(t.Context()).Val()
	for range 10 {
		other(t, server, s, key, at.Add(5*time.Hour))
	}
	v := takeAt(t, limiter, key, at)
	if v.Allowed || !around(v.Retry, life+time.Millisecond) || !around(v.Full.Sub(at), life+time.Millisecond) {
		t.Errorf("%+v; want to wait for %s", v, life)
	}
	client.PExpire(t.Context(), key, 5*time.Second)
	if v := takeAt(t, limiter, key, at); v.Allowed || v.Retry > 5001*time.Millisecond || client.PTTL(t.Context(), key).Val() > 5*time.Second {
		t.Errorf("%+v; want to wait for the end of the key", v)
	}
}

// TestOthersKeepTheExpiry: keys that others made are mended, and others keep what was set.
func TestOthersKeepTheExpiry(t *testing.T) {
	server := redistest.Shared(t)
	s := settings{10, 1, time.Second}
	limiter, client, key := bucket(t, s.config())
	at := client.Time(t.Context()).Val()
	other(t, server, s, key, at)
	if left := client.PTTL(t.Context(), key).Val(); left != -1 {
		t.Fatalf("the guide's script set an expiry of %s", left)
	}
	takeAt(t, limiter, key, at)
	other(t, server, s, key, at)
	if left := client.PTTL(t.Context(), key).Val(); !around(left, life) {
		t.Errorf("lives for %s; want %s", left, life)
	}
}

const (
	otherAddr = "HEADGATE_TEST_OTHER_ADDR"
	otherLead = "HEADGATE_TEST_OTHER_LEAD"
)

// TestAtTheSameTime lets goroutines of this package and another process, each by its own
// clock, ask for a while. By the server's clock they never get more together than
// the one bucket gives.
func TestAtTheSameTime(t *testing.T) {
	s := settings{40, 5, 100 * time.Millisecond}
	const span = 400 * time.Millisecond
	if addr := os.Getenv(otherAddr); addr != "" {
		anotherProcess(t, &redistest.Server{Addr: addr}, s, span)
		return
	}
	for _, lead := range []time.Duration{0, 2 * time.Second, 3 * time.Hour, -2 * time.Second, -3 * time.Hour} {
		server := redistest.Start(t)
		client := connect(t, server)
		cfg := s.config()
		cfg.Client = client
		limiter := ratelimiter.NewTokenBucket(cfg)
		start := client.Time(t.Context()).Val()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAtTheSameTime$") //nolint:gosec // this test binary, by itself
		cmd.Env = append(os.Environ(), otherAddr+"="+server.Addr, otherLead+"="+lead.String())
		var mine atomic.Int64
		var theirs int64
		var done atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			defer done.Store(true)
			out, err := cmd.CombinedOutput()
			if _, scanErr := fmt.Sscanf(string(out), "GRANTED %d", &theirs); err != nil || scanErr != nil {
				t.Errorf("process: %v\n%s", err, out)
			}
		})
		for range 4 {
			wg.Go(func() {
				for !done.Load() {
					if allowed, _, err := limiter.Allow(t.Context(), "shared"); err != nil {
						t.Error(err)
						return
					} else if allowed {
						mine.Add(1)
					}
				}
			})
		}
		wg.Wait()
		passed := client.Time(t.Context()).Val().Sub(start)
		difference := min(int64(lead.Abs()/s.interval)*5+5, 40)
		if lead == 0 {
			difference = 0
		}
		most := 40 + 5*(int64(passed/s.interval)+1) + difference
		t.Logf("lead %s: %d and %d granted in %s; at most %d", lead, mine.Load(), theirs, passed, most)
		if granted := mine.Load() + theirs; granted > most || granted < 40 {
			t.Errorf("lead %s: %d and %d granted in %s; want at most %d", lead, mine.Load(), theirs, passed, most)
		}
	}
}

// anotherProcess asks by the guide's script for a while, by a clock of its own.
func anotherProcess(t *testing.T, server *redistest.Server, s settings, span time.Duration) {
	lead, err := time.ParseDuration(os.Getenv(otherLead))
	if err != nil {
		t.Fatal(err)
	}
	granted := 0
	for start := time.Now(); time.Since(start) < span; {
		if allowed, _ := other(t, server, s, "shared", time.Now().Add(lead)); allowed {
			granted++
		}
	}
	fmt.Println("GRANTED", granted)
}
