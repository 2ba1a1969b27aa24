package upstream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coocood/freecache"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/limiter"
	"github.com/envoyproxy/ratelimit/src/utils"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

type clock struct{}

func (clock) UnixNow() int64 { return time.Now().Unix() }

// TestTheSameDecisions compares answers and statistics on random requests, as time passes.
func TestTheSameDecisions(t *testing.T) {
	over := 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			r := random{Rand: rand.New(rand.NewPCG(seed, 5))}
			p := newPair(t, r)
			for range 100 {
				req := r.request()
				want, got := p.theirs(req), p.ours(req)
				if got != want {
					t.Fatalf("seed %d: %+v\ngot  %s\nwant %s\n%s", seed, req, got, want, p.text)
				}
				over += strings.Count(want, "OVER")
				time.Sleep(time.Duration(r.IntN(3_000)) * time.Millisecond)
			}
			p.compareStatistics()
		})
	}
	if over < 3000 {
		t.Errorf("%d descriptors were over their limit; want at least 3,000", over)
	}
}

// pair is upstream and Headgate with one configuration.
type pair struct {
	t       *testing.T
	text    string
	oracle  oracle
	base    *limiter.BaseRateLimiter
	counts  map[string]uint64 // by upstream's keys, of which the time is a part
	limiter *envoy.Limiter
	stats   envoy.Statistics
	resp    envoy.Response
}

// pairs makes the domains differ, because upstream's statistics are those of the process.
var pairs atomic.Int64

func newPair(t *testing.T, r random) *pair {
	t.Helper()
	r.small = true
	p := &pair{t: t, text: r.config(fmt.Sprint("d", pairs.Add(1)))}
	files := []file{{"f.yaml", p.text}}
	o, err := loadUpstream(files, false)
	for err != nil {
		p.text = r.config(fmt.Sprint("d", pairs.Add(1)))
		files[0].text = p.text
		o, err = loadUpstream(files, false)
	}
	c, errs := loadOurs(files, false)
	if errs != nil {
		t.Fatal(errs)
	}
	var local *freecache.Cache
	options := envoy.Options{}
	if r.IntN(2) == 0 {
		local, options.LocalCacheBytes = freecache.NewCache(1<<19), 1<<19
	}
	p.oracle = o
	p.base = limiter.NewBaseRateLimit(clock{}, nil, 0, local, 0.8, "", manager)
	p.counts = map[string]uint64{}
	p.limiter = envoy.New(headgate.NewMemorySize(1000), nil, options, &p.stats)
	p.limiter.Use(c)
	return p
}

// domain is the name of the domain, which is random because upstream's statistics are shared.
func (p *pair) domain() string {
	line, _, _ := strings.Cut(p.text, "\n")
	return strings.TrimPrefix(line, "domain: ")
}

func (p *pair) theirs(r envoy.Request) string {
	req := &pb.RateLimitRequest{Domain: p.domain(), HitsAddend: r.HitsAddend}
	var limits []*config.RateLimit
	var unlimited []bool
	for _, d := range r.Descriptors {
		one := message(&d)
		req.Descriptors = append(req.Descriptors, one)
		l := p.oracle.config.GetLimit(p.t.Context(), req.GetDomain(), one)
		free := l != nil && l.Unlimited
		if free {
			l = nil
		}
		limits, unlimited = append(limits, l), append(unlimited, free)
	}
	var b strings.Builder
	for i, s := range p.decide(req, limits) {
		remaining := s.GetLimitRemaining()
		if unlimited[i] {
			remaining = 1<<32 - 1
		}
		fmt.Fprintf(&b, "%s %d, %d per %d, reset in %d; ", s.GetCode(), remaining,
			s.GetCurrentLimit().GetRequestsPerUnit(), s.GetCurrentLimit().GetUnit(),
			s.GetDurationUntilReset().GetSeconds())
	}
	return b.String()
}

// decide asks upstream's limiter. It does what upstream's package redis does around that.
func (p *pair) decide(
	req *pb.RateLimitRequest, limits []*config.RateLimit,
) []*pb.RateLimitResponse_DescriptorStatus {
	hits := utils.GetHitsAddends(req)
	keys := p.base.GenerateCacheKeys(req, limits, hits)
	cached := make([]bool, len(keys))
	for i, key := range keys {
		cached[i] = key.Key != "" && p.base.IsOverLimitWithLocalCache(key.Key)
	}
	after := make([]uint64, len(keys))
	for i, key := range keys {
		if key.Key != "" && !cached[i] {
			p.counts[key.Key] += hits[i]
			after[i] = p.counts[key.Key]
		}
	}
	var all []*pb.RateLimitResponse_DescriptorStatus
	for i, key := range keys {
		info := limiter.NewRateLimitInfo(limits[i], after[i]-hits[i], after[i], 0, 0)
		all = append(all, p.base.GetResponseDescriptorStatus(key.Key, info, cached[i], hits[i]))
	}
	return all
}

func (p *pair) ours(r envoy.Request) string {
	r.Domain = p.domain()
	if err := p.limiter.Decide(p.t.Context(), &r, &p.resp); err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range p.resp.Statuses {
		fmt.Fprintf(&b, "%s %d, %d per %d, reset in %d; ", pb.RateLimitResponse_Code(s.Code), s.Remaining,
			s.Limit.RequestsPerUnit, s.Limit.Unit, int64(s.Reset/time.Second))
	}
	return b.String()
}

// compareStatistics compares each counter with upstream's of the same name.
func (p *pair) compareStatistics() {
	p.stats.Visit(func(c envoy.Counter) {
		if c.Domain == "" {
			return
		}
		if want := manager.GetStatsStore().NewCounter(c.StatName()).Value(); c.Value != want {
			p.t.Errorf("%s is %d; want %d\n%s", c.StatName(), c.Value, want, p.text)
		}
	})
}

// request asks for descriptors whose keys upstream does not confuse.
func (r random) request() envoy.Request {
	req := envoy.Request{HitsAddend: uint32(r.IntN(3))}
	for range 1 + r.IntN(3) {
		d := envoy.Descriptor{}
		for range 1 + r.IntN(2) {
			d.Entries = append(d.Entries, envoy.Entry{
				Key: pick(r, "a", "a", "b", "c"), Value: pick(r, "b", "bc", "b", "d", "c"),
			})
		}
		if r.IntN(3) == 0 {
			d.Hits, d.HasHits = r.Uint64N(7), true
		}
		req.Descriptors = append(req.Descriptors, d)
	}
	return req
}
