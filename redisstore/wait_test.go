package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// visit is one call of WaitN, or of Reserve and Wait. Times are since the start of a crowd.
type visit struct {
	at       time.Duration
	leaves   time.Duration // 0: never
	n        int64
	reserves bool
	came     time.Duration // when it called
	passed   time.Duration
	err      error
}

// crowd is the callers that wait for one key in one process.
type crowd struct {
	limiter *headgate.Limiter
	key     string
	visits  []visit
}

// waitRate and waitBurst are the limit of the crowds.
const waitRate, waitBurst = 200, 2

// A crowd comes at once, and later callers after the pause.
const (
	crowdSize, laterCallers = 100, 20

	pauseFor = 300 * time.Millisecond
	laterAt  = pauseFor + 100*time.Millisecond
	maxShift = 20 * time.Millisecond // within a crowd, and within the later callers

	plainCrowds = 2 // make no reservations, and have a key and a cost of their own
)

// Callers leave at any moment of a Wait (asking, booked, in line), cancel reservations, and lose
// answers. The others pass in order and at the full rate, and later callers go behind them: no
// interval holds more than the limit.
//
// HEADGATE_SOAK=2m repeats it with random seeds for as long.
func TestWaitWhileCallersLeave(t *testing.T) {
	soak, _ := time.ParseDuration(os.Getenv("HEADGATE_SOAK"))
	seed := uint64(1)
	for until := time.Now().Add(soak); ; seed = rand.Uint64() {
		for _, kind := range []string{"paused", "awake", "far away", "answers lost"} {
			t.Run(fmt.Sprint(kind, ", seed ", seed), func(t *testing.T) {
				for try := 1; ; try++ {
					late, problems := waitWhileCallersLeave(t, kind, seed)
					if len(problems) == 0 {
						return
					}
					text := strings.Join(problems, "\n")
					if late < tooLate || try == 5 {
						t.Fatalf("on a machine that is late by %s:\n%s", late, text)
					}
					t.Logf("again, because the machine is late by %s:\n%s", late, text)
				}
			})
		}
		if time.Now().After(until) || t.Failed() {
			return
		}
	}
}

// tooLate is how late a machine is whose results prove nothing against the store. It is less late
// without other load.
const tooLate = 20 * time.Millisecond

func waitWhileCallersLeave(
	t *testing.T, kind string, seed uint64,
) (late time.Duration, problems []string) {
	t.Helper()
	server := sharedServer(t)
	addr, proxy := server.Addr, (*redistest.Proxy)(nil)
	if kind == "answers lost" || kind == "far away" {
		proxy = redistest.StartProxy(t, server.Addr)
		addr = proxy.Addr
	}
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	limit := headgate.PerSecond(waitRate).Burst(waitBurst)
	random := rand.New(rand.NewPCG(seed, 5))
	crowds := make([]crowd, 6)
	for i := range crowds {
		s, err := redisstore.New(client, redisstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := headgate.NewLimiter(s, limit)
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint("crowd ", i)
		if i == 5 { // the last two share a key
			key = crowds[4].key
		}
		take(t, s, headgate.Request{Key: "warm", Limit: limit, MaxWait: time.Minute}) // loads the script
		crowds[i] = crowd{l, key, randomVisits(random, i)}
	}
	if kind == "paused" {
		client.Do(t.Context(), "CLIENT", "PAUSE", "10000", "WRITE")
		time.AfterFunc(pauseFor, func() { client.Do(context.Background(), "CLIENT", "UNPAUSE") })
	}
	switch kind {
	case "answers lost":
		proxy.Cut(5)
	case "far away":
		proxy.Delay(3 * time.Millisecond)
	}
	late = attend(t, server, crowds)
	if proxy != nil {
		proxy.Heal()
	}
	for i, c := range crowds {
		for _, p := range c.check(i, kind, late) {
			problems = append(problems, fmt.Sprintf("crowd %d: %s", i, p))
		}
	}
	if n := over(slices.Concat(crowds[4].visits, crowds[5].visits), late); n > 0 {
		problems = append(problems, fmt.Sprintf("two processes on one key: over by %g", n))
	}
	return late, problems
}

// randomVisits are a crowd of which half leaves, and later callers. Those of crowd 3 need 1 or 2
// tokens.
func randomVisits(random *rand.Rand, crowd int) []visit {
	visits := make([]visit, crowdSize+laterCallers)
	for i := range visits {
		v := &visits[i]
		v.n, v.at = 1, time.Duration(random.Int64N(int64(maxShift)))
		v.reserves = crowd >= plainCrowds && random.IntN(4) == 0
		if crowd == 3 {
			v.n += random.Int64N(2)
		}
		if i >= crowdSize {
			v.at += laterAt
		} else if i%2 == 0 {
			v.leaves = v.at + time.Duration(random.Int64N(1<<(10+random.IntN(20))))
		}
	}
	return visits
}

// attend makes all visits, and returns by how much this machine, or the server on it, was late
// meanwhile.
func attend(t *testing.T, server *redistest.Server, crowds []crowd) (late time.Duration) {
	t.Helper()
	direct := connect(t, server)
	start, stop := time.Now(), make(chan struct{})
	var all, probe sync.WaitGroup
	probe.Go(func() {
		for {
			from := time.Now()
			select {
			case <-time.After(time.Millisecond):
				direct.Ping(context.Background())
				late = max(late, time.Since(from)-time.Millisecond)
			case <-stop:
				return
			}
		}
	})
	for _, c := range crowds {
		for i := range c.visits {
			v := &c.visits[i]
			all.Go(func() {
				time.Sleep(v.at)
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				if v.leaves > 0 {
					time.AfterFunc(v.leaves-v.at, cancel)
				}
				v.came = time.Since(start)
				v.err = c.wait(ctx, v)
				v.passed = time.Since(start)
			})
		}
	}
	all.Wait()
	close(stop)
	probe.Wait()
	return late
}

func (c crowd) wait(ctx context.Context, v *visit) error {
	if !v.reserves {
		return c.limiter.WaitN(ctx, c.key, v.n)
	}
	r, err := c.limiter.Reserve(ctx, c.key, v.n)
	if err != nil {
		return err
	}
	return r.Wait(ctx)
}

// answerLate is by how much one answer may be later than another.
const answerLate = 20 * time.Millisecond

func (c crowd) check(i int, kind string, late time.Duration) (problems []string) {
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if n := over(c.visits, late); n > 0 {
		problem("over by %g", n)
	}
	stayed, overtaken, last := c.passed(late)
	if overtaken > 0 {
		problem("later callers overtook %d of %d", overtaken, stayed)
	}
	if kind == "answers lost" || i >= plainCrowds {
		// A start time cannot be cancelled after which a reservation, another cost or another
		// process has booked, or whose answer was lost.
		return problems
	}
	if stayed < crowdSize/2+laterCallers {
		problem("%d passed; want all %d that stayed", stayed, crowdSize/2+laterCallers)
	}
	ideal := time.Duration(stayed) * time.Second / waitRate
	if kind == "paused" {
		ideal += pauseFor
	}
	ideal = max(ideal, laterAt+maxShift+laterCallers*time.Second/waitRate)
	if last > ideal+late+100*time.Millisecond {
		problem("the last of %d passed after %s; want %s", stayed, last, ideal)
	}
	return problems
}

// passed counts the visits that passed, and those that waited in the line and that another one overtook
// which came later. Reservations are not in the line.
func (c crowd) passed(late time.Duration) (n, overtaken int, last time.Duration) {
	for i, v := range c.visits {
		if v.err != nil {
			continue
		}
		n, last = n+1, max(last, v.passed)
		if i < crowdSize && !v.reserves && slices.ContainsFunc(c.visits[crowdSize:], func(w visit) bool {
			return w.err == nil && !w.reserves && w.came > v.came+answerLate && w.passed+late+answerLate < v.passed
		}) {
			overtaken++
		}
	}
	return n, overtaken, last
}

// over is how many tokens more than the limit grants passed in some interval. The machine is late
// when it receives a start time, and when it wakes the caller.
func over(visits []visit, late time.Duration) (most float64) {
	all := slices.DeleteFunc(slices.Clone(visits), func(v visit) bool { return v.err != nil })
	slices.SortFunc(all, func(a, b visit) int { return cmp.Compare(a.passed, b.passed) })
	level, last := 0., time.Duration(0)
	for _, v := range all {
		level = max(level-waitRate*(v.passed-last).Seconds(), 0) + float64(v.n)
		last = v.passed
		most = max(most, level-waitBurst-waitRate*(2*late+answerLate).Seconds())
	}
	return most
}
