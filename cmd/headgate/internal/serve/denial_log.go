package serve

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/observe"
)

const (
	denialInterval = time.Minute // between the lines of a rule
	denialKeys     = 32          // that are counted for each rule
)

// denialLog logs each minute what each rule denied, and the key that it denied most.
type denialLog struct {
	log *slog.Logger
	key func(string) string // as it may be in the log

	mu   sync.Mutex
	tops map[string]*ruleDenials
}

type ruleDenials struct {
	denied, banned int
	top            *observe.TopDenied
}

// add counts a denial.
func (l *denialLog) add(e *rules.Event) {
	if e.Outcome != rules.Denied {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.tops[e.Rule.Name]
	if r == nil {
		r = &ruleDenials{top: observe.NewTopDenied(denialKeys)}
		l.tops[e.Rule.Name] = r
	}
	r.denied++
	if e.Banned {
		r.banned++
	}
	r.top.Add(e.Key, headgate.Limit{}, 1)
}

// run writes the lines until ctx ends.
func (l *denialLog) run(ctx context.Context) {
	tick := time.NewTicker(denialInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.write()
		}
	}
}

func (l *denialLog) write() {
	l.mu.Lock()
	tops := l.tops
	l.tops = map[string]*ruleDenials{}
	l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(tops)) {
		r := tops[name]
		first := r.top.Top()[0]
		l.log.Info("denials of the last minute", "rule", name, "denied", r.denied,
			"of_banned_keys", r.banned, "top_key", l.key(first.Key), "of_top_key", first.AtLeast)
	}
}
