package httplimit_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// A fleet of processes calls an API that counts requests as they arrive.
const (
	processes     = 4
	callers       = 6 // in each process
	arrivalsLimit = 10

	childRedis = "HEADGATE_TEST_CHILD_REDIS"
	childAPI   = "HEADGATE_TEST_CHILD_API"
)

// network is what lies between the fleet and the API.
type network struct {
	delay time.Duration // the longest each way
	// lost requests and responses, a killed process, a Redis that loses answers
	faults bool
}

// In any window, at most 10 requests arrive. HEADGATE_SOAK=1m calls for as long, at 10 per second,
// and -v prints the rate.
func TestArrivalsOfAFleet(t *testing.T) {
	arrivalsOfAFleet(t,
		network{delay: 30 * time.Millisecond})
}

func TestArrivalsOfAFleetWithFaults(t *testing.T) {
	arrivalsOfAFleet(t, network{delay: 10 * time.Millisecond, faults: true})
}

// spans returns the period of the limit, and how long a process makes calls.
func spans() (period, life time.Duration) {
	if soak, err := time.ParseDuration(os.Getenv("HEADGATE_SOAK")); err == nil {
		return time.Second, max(soak, 5*time.Second)
	}
	return 200 * time.Millisecond, 3 * time.Second
}

func arrivalsOfAFleet(t *testing.T, between network) {
	if os.Getenv(childRedis) != "" {
		callAPI(t, between)
		return
	}
	t.Parallel()
	addr := redistest.Start(t).Addr
	if between.faults {
		proxy := redistest.StartProxy(t, addr)
		proxy.Cut(100)
		addr = proxy.Addr
	}
	a := &countingAPI{network: between}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	period, life := spans()
	var fleet sync.WaitGroup
	for i := range processes {
		fleet.Go(func() {
			run := "-test.run=^" + t.Name() + "$"
			child := exec.CommandContext(t.Context(), os.Args[0], run) //nolint:gosec // itself
			child.Env = append(os.Environ(), childRedis+"="+addr, childAPI+"="+server.URL)
			var out bytes.Buffer
			child.Stdout, child.Stderr = &out, &out
			if err := child.Start(); err != nil {
				t.Error(err)
				return
			}
			killed := between.faults && i == 0
			if killed {
				time.AfterFunc(life/2, func() { _ = child.Process.Kill() })
			}
			if err := child.Wait(); err != nil != killed {
				t.Errorf("process, killed %t: %v\n%s", killed, err, out.String())
			}
		})
	}
	fleet.Wait()
	server.Close() // waits for requests that are on their way
	a.check(t, period)
}

// countingAPI counts requests as they arrive. It also is the network on their way.
type countingAPI struct {
	network

	mu       sync.Mutex
	arrivals []time.Time
	took     time.Duration // all requests together
}

func (a *countingAPI) ServeHTTP(http.ResponseWriter, *http.Request) {
	sent := time.Now()
	if a.faults && rand.IntN(50) == 0 {
		time.Sleep(time.Second / 2) // the client has gone
	}
	a.travel()
	a.mu.Lock()
	a.arrivals = append(a.arrivals, time.Now())
	a.mu.Unlock()
	a.travel()
	a.mu.Lock()
	a.took += time.Since(sent)
	a.mu.Unlock()
}

// travel delays a request or a response. With faults, one in 50 is lost.
func (n network) travel() {
	time.Sleep(rand.N(n.delay))
	if n.faults && rand.IntN(50) == 0 {
		panic(http.ErrAbortHandler) // closes the connection
	}
}

func (a *countingAPI) check(t *testing.T, period time.Duration) {
	t.Helper()
	all := a.arrivals
	slices.SortFunc(all, time.Time.Compare)
	if len(all) <= arrivalsLimit {
		t.Fatalf("%d requests arrived; want more than those of a period", len(all))
	}
	for i := arrivalsLimit; i < len(all); i++ {
		if span := all[i].Sub(all[i-arrivalsLimit]); span < period {
			t.Errorf("%d arrivals within %s", arrivalsLimit+1, span)
		}
	}
	span, took := all[len(all)-1].Sub(all[0]), a.took/time.Duration(len(all))
	rate := float64(len(all)-arrivalsLimit) / span.Seconds()
	most := arrivalsLimit / (period + took).Seconds()
	t.Logf("%d arrivals in %s, responses after %s: %.2f of n / (period + response time)",
		len(all), span, took, rate/most)
}

// callAPI is a process of the fleet.
func callAPI(t *testing.T, between network) {
	period, life := spans()
	store, err := redisstore.Open("redis://" + os.Getenv(childRedis) + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	limiter, err := headgate.NewLimiter(store, headgate.Per(arrivalsLimit, period))
	if err != nil {
		t.Fatal(err)
	}
	ttl, base := 30*time.Second, &http.Transport{MaxIdleConnsPerHost: callers}
	if between.faults {
		ttl, base.ResponseHeaderTimeout = 2*time.Second+period, 300*time.Millisecond
	}
	transport, err := httplimit.NewTransport(limiter, httplimit.TransportOptions{
		Base: base, Permits: newPermits(t, store, arrivalsLimit, ttl), Period: period,
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(t.Context(), life)
	defer cancel()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				got := call(ctx, client, os.Getenv(childAPI))
				if strings.Contains(got, "deadline") {
					return
				}
				if got != "200 OK200" && !between.faults {
					t.Error(got)
				}
			}
		})
	}
	all.Wait()
}
