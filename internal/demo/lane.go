package demo

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

var laneNames = [2]string{"left", "right"}

// key is the key of all requests of the page.
const key = "demo"

// lane is one side of the page: a limit that decides all traffic, and its results.
type lane struct {
	name    string
	limiter *headgate.Limiter

	mu      sync.Mutex
	limit   headgate.Limit // without its name
	config  config         // the limit in the terms of the documentation's demo
	largest *largestWindow
	trace   *trace
	fields  []field // that the last decision would have sent

	configuring sync.Mutex // held by POST /config, which reads the limit and then changes it
}

func newLane(store headgate.Store, name string, limit headgate.Limit) (*lane, error) {
	limiter, err := headgate.NewLimiter(store, limit.Named(name))
	if err != nil {
		return nil, err
	}
	return &lane{name: name, limiter: limiter, limit: limit, config: configOf(limit),
		largest: newLargestWindow(limit), trace: newTrace()}, nil
}

// change replaces the limit. The name stays, so the key keeps what it has consumed unless the
// algorithm changes.
func (l *lane) change(limit headgate.Limit, c config) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.limiter.SetLimits(limit.Named(l.name)); err != nil {
		return err
	}
	l.limit, l.config, l.largest = limit, c, newLargestWindow(limit)
	return nil
}

// clear forgets the results.
func (l *lane) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest, l.trace, l.fields = newLargestWindow(l.limit), newTrace(), nil
}

// outcome is a decision, and the time during which it was made.
type outcome struct {
	from, to time.Time
	decision headgate.Decision
}

// take decides one request.
func (l *lane) take(ctx context.Context) (outcome, error) {
	from := time.Now()
	d, err := l.limiter.Allow(ctx, key)
	return outcome{from, time.Now(), d}, err
}

// peek returns the decision of limiter, and charges nothing.
func peek(ctx context.Context, limiter *headgate.Limiter) (outcome, error) {
	from := time.Now()
	d, err := limiter.Peek(ctx, key)
	return outcome{from, time.Now(), d}, err
}

// results are what a batch adds its outcomes to: those of the lane when the batch began.
type results struct {
	largest *largestWindow
	trace   *trace
}

func (l *lane) results() results {
	l.mu.Lock()
	defer l.mu.Unlock()
	return results{l.largest, l.trace}
}

// note records the outcomes of a batch. A reset since its beginning has dropped its counts, and a
// change of the limit has dropped what only counts for the limit before.
func (l *lane) note(begun results, outcomes []outcome, ahead time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if begun.trace == l.trace {
		l.trace.add(outcomes, ahead)
	}
	if begun.largest != l.largest || len(outcomes) == 0 {
		return
	}
	l.largest.add(outcomes)
	last := slices.MaxFunc(outcomes, func(a, b outcome) int { return a.to.Compare(b.to) })
	l.fields = headerFields(last.to, last.decision)
}

// field is one field of a header.
type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// spelled returns the name of a field as its standard writes it. Package net/http keeps names in
// another case, which means the same.
func spelled(name string) string { return strings.ReplaceAll(name, "Ratelimit", "RateLimit") }

// headerFields returns the header fields of the response to a request that d decided at now,
// sorted by name.
func headerFields(now time.Time, d headgate.Decision) []field {
	h := http.Header{}
	httplimit.AllFields.Write(h, now, d)
	fields := []field{}
	for name, values := range h {
		for _, value := range values {
			fields = append(fields, field{spelled(name), value})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	return fields
}
