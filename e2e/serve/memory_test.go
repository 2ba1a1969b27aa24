package serve

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	kind "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/headgate/headgate/internal/redistest"
)

const memoryRules = `
when_store_fails: share
instances: 1
rules:
  - {name: api, match: {path: /}, key: "header:X-User", limits: 10/s, label_keys: true}
  - {name: once, match: {path: /once}, key: "header:X-User", limits: 1/2s}
domains:
  - domain: edge
    descriptors:
      - key: user
        value: "u*"
        detailed_metric: true
        rate_limit: {unit: second, requests_per_unit: 5}
      - {key: plain, value: "u*", rate_limit: {unit: second, requests_per_unit: 5}}
      - {key: named, value_to_metric: true, rate_limit: {unit: second, requests_per_unit: 5}}
`

// together is how many keys one request brings.
const together = 100

// traffic sends the keys from n on in one request, each of which is new.
type traffic func(t *testing.T, c *client, n int)

func takeAll(rule string) traffic {
	return func(t *testing.T, c *client, n int) {
		var b strings.Builder
		for i := range together {
			fmt.Fprintf(&b, `,{"rule":%q,"key":"header:user-%d"}`, rule, n+i)
		}
		body := strings.NewReader(`{"requests":[` + b.String()[1:] + `]}`)
		r, err := c.web.Post(c.base+"/v1/take-all", "application/json", body) //nolint:noctx // ours
		if err != nil {
			t.Error(err)
			return
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("status %d", r.StatusCode)
		}
	}
}

func twice(f traffic) traffic {
	return func(t *testing.T, c *client, n int) {
		f(t, c, n)
		f(t, c, n)
	}
}

func descriptors(key string, override bool) traffic {
	return func(t *testing.T, c *client, n int) {
		r := &rls.RateLimitRequest{Domain: "edge"}
		for i := range together {
			d := &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{
				{Key: key, Value: "u" + strconv.Itoa(n+i)},
			}}
			if override {
				d.Entries[0].Value = strconv.Itoa(i) // few keys, each with many limits
				d.Limit = &common.RateLimitDescriptor_RateLimitOverride{
					RequestsPerUnit: uint32(n + i + 1), Unit: kind.RateLimitUnit_SECOND,
				}
			}
			r.Descriptors = append(r.Descriptors, d)
		}
		if _, err := c.grpc[n/together%len(c.grpc)].ShouldRateLimit(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
}

// TestMemoryIsFlat sends keys that never come again, and holds what the server keeps after all of
// them against what it kept after the first fifth.
func TestMemoryIsFlat(t *testing.T) {
	t.Parallel()
	keys := pick(30_000, 1_000_000)
	floods := []struct {
		name string
		keys int
		send traffic
	}{
		{"keys of a rule", keys, takeAll("api")},
		{"keys of a rule that are denied", keys, twice(takeAll("once"))},
		{"wildcard values", keys, descriptors("plain", false)},
		{"wildcard values, detailed_metric", keys, descriptors("user", false)},
		{"values, value_to_metric", keys, descriptors("named", false)},
		{"limits in requests", pick(20_000, 100_000), descriptors("over", true)},
	}
	stores := []string{redistest.Start(t).URL(), "memory:"}
	for _, store := range stores[:pick(1, 2)] { // the policy share keeps a store in memory, too
		t.Run(store, func(t *testing.T) {
			s := serve(t, memoryRules, "--store", store)
			for _, f := range floods {
				c := newClient(t, s)
				flood(t, c, f.send, 0, f.keys/5)
				before, rssBefore := s.heap(t), s.rss(t)
				flood(t, c, f.send, f.keys/5, f.keys)
				after, rss := s.heap(t), s.rss(t)
				c.close()
				t.Logf("%s: %d keys: %d KiB live, %d KiB resident; %d keys: %d KiB live, %d KiB resident",
					f.name, f.keys/5, before, rssBefore, f.keys, after, rss)
				// What is alive are the keys of the last seconds, in tables that double, and the
				// sample of the console, which has 8 MiB.
				if grown, most := after-before, pick(12, 24); grown > most<<10 {
					t.Errorf("%s: %d KiB more are live after %d keys than after a fifth; want at most %d MiB",
						f.name, grown, f.keys, most)
				}
				if rss > rssBefore*5/4+32<<10 {
					t.Errorf("%s: %d KiB are resident after %d keys, and %d KiB after a fifth of them",
						f.name, rss, f.keys, rssBefore)
				}
			}
			if text := get(t, "http://"+s.http+"/metrics"); strings.Count(text, "\n") > 30_000 {
				t.Errorf("the metrics have %d lines", strings.Count(text, "\n"))
			}
		})
	}
}

// flood sends the keys from one number to another, each once.
func flood(t *testing.T, c *client, send traffic, from, to int) {
	t.Helper()
	next := atomic.Int64{}
	next.Store(int64(from))
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for n := next.Add(together); n <= int64(to); n = next.Add(together) {
				send(t, c, int(n)-together)
			}
		})
	}
	senders.Wait()
}

var heapAlloc = regexp.MustCompile(`# HeapAlloc = (\d+)`)

// heap returns what is alive after a garbage collection, in KiB.
func (s *server) heap(t *testing.T) int {
	t.Helper()
	return heapOf(t, get(t, "http://"+s.debug+"/debug/pprof/heap?debug=1&gc=1"))
}

func heapOf(t *testing.T, text string) int {
	t.Helper()
	found := heapAlloc.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no HeapAlloc in %.100s", text)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n >> 10
}
