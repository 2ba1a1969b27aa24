package serve

import (
	"context"
	"sync"
	"time"
)

// result is one request of a load.
type result struct {
	answer

	kind       int
	server     int
	start, end time.Duration // since the load began
}

// load sends requests at a steady pace, whether or not earlier ones are answered.
type load struct {
	began time.Time
	stop  func() []result // ends the load and returns all answers
}

// lateness is by how much the timers of this machine were late at most.
type lateness struct {
	mu   sync.Mutex
	most time.Duration
}

func (l *lateness) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(l.most, d)
}

func (l *lateness) value() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// tick is the time between the bursts of a load.
const tick = 5 * time.Millisecond

// asking sends request n.
type asking func(c *client, n int) (kind int, a answer)

// start sends rate requests a second in all to the clients in turn.
func start(clients []*client, rate int, late *lateness, ask asking) *load {
	l := &load{began: time.Now()}
	over, ended := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var results []result
	go func() {
		defer close(ended)
		var asked sync.WaitGroup
		defer asked.Wait()
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for n, last := 0, l.began; ; {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			late.add(time.Since(last) - tick)
			last = time.Now()
			for due := int(time.Since(l.began).Seconds() * float64(rate)); n < due; n++ {
				number := n
				asked.Go(func() {
					r := result{server: number % len(clients), start: time.Since(l.began)}
					r.kind, r.answer = ask(clients[r.server], number)
					r.end = time.Since(l.began)
					mu.Lock()
					defer mu.Unlock()
					results = append(results, r)
				})
			}
		}
	}()
	l.stop = sync.OnceValue(func() []result {
		close(over)
		<-ended
		return results
	})
	return l
}

// now is the time since the load began.
func (l *load) now() time.Duration { return time.Since(l.began) }

// lasts waits while the load goes on: time is what is tested.
func (l *load) lasts(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
