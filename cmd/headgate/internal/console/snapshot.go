package console

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
)

// The bounds of a snapshot.
const (
	snapshotKeys     = 1_000 // denied keys
	snapshotRuleKeys = 40    // of them, those of a rule
	snapshotRules    = 500
	snapshotSteps    = 3   // the last that are over
	snapshotLines    = 200 // of the rules, or none at all
)

// snapshot is what an instance shows to the others.
type snapshot struct {
	ID       string                 `json:"id"` // of the process
	Instance instance               `json:"instance"`
	Calls    []uint64               `json:"calls"` // of the store, by the buckets of latency
	Rates    map[string]rates       `json:"rates"`
	Requests [2]float64             `json:"requests"` // asked and denied, for each second
	Denied   map[string][]deniedKey `json:"denied"`
	Steps    []stepCounts           `json:"steps"` // the oldest first
	Lines    []string               `json:"lines"` // of the rules in force; null: too many

	ahead int64 // milliseconds; see peer
}

// instance is a server of the fleet, as it is shown.
type instance struct {
	Name    string      `json:"name"`
	Self    bool        `json:"self"`
	At      int64       `json:"at"` // of its snapshot, in milliseconds since 1970
	Started int64       `json:"started_at"`
	Version string      `json:"version"`
	Config  configState `json:"config"`
	Store   string      `json:"store"` // up, slow, down or memory
	P50     *int64      `json:"p50_us"`
	P99     *int64      `json:"p99_us"`
	Rate    float64     `json:"decisions_per_s"`

	Differs *difference `json:"differs,omitempty"`  // its rules, from those of the viewed instance
	Ahead   int64       `json:"clock_ms,omitempty"` // of the clock of the viewed instance
}

// configState says which configuration is in force, and why the last one is not.
type configState struct {
	Hash     string     `json:"hash"`
	LoadedAt int64      `json:"loaded_at"` // milliseconds since 1970
	Error    *loadError `json:"error"`
}

type loadError struct {
	Text string `json:"text"`
	At   int64  `json:"at"`
}

// maxErrorText bounds the text of an error that is shown.
const maxErrorText = 4 << 10

func (l *loaded) state() configState {
	c := configState{Hash: l.config.Hash}
	if !l.at.IsZero() {
		c.LoadedAt = l.at.UnixMilli()
	}
	if l.err != nil {
		text := config.WithoutPasswords(l.err.Error())
		text = strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "") // the end may be cut
		c.Error = &loadError{Text: text, At: l.errAt.UnixMilli()}
	}
	return c
}

// The states of a store.
const (
	storeUp     = "up"
	storeSlow   = "slow" // see slowStore
	storeDown   = "down"
	storeMemory = "memory"
)

// slowStore is the p50 from which a store counts as slow, so that most requests wait: a p99 can be
// that of a busy machine. It is slow until the p50 is a fifth lower, and while many decisions are
// made without it, which are fast.
const slowStore = 10 * time.Millisecond

// storeState returns the state of the store whose calls have this p50. It agrees with the last
// exchange, which may know more than the last ping.
func (r *runner) storeState(p50 *int64) string {
	isLate := errors.Is(r.failed, context.DeadlineExceeded)
	least := slowStore
	if r.isSlow {
		least -= slowStore / 5
	}
	switch o := r.handler.options; {
	case o.Redis == nil:
		return storeMemory
	case !o.StoreUp() || r.failed != nil && !isLate:
		return storeDown
	case isLate || p50 != nil && (*p50 >= least.Microseconds() ||
		r.own.Instance.At-r.without < silence.Milliseconds() &&
			(r.isSlow || r.common.isDegraded(r.sent))):
		return storeSlow
	}
	return storeUp
}

// snapshot returns what this instance has counted.
func (r *runner) snapshot() *snapshot {
	h, s := r.handler, r.counters
	calls := s.latency.recent()
	p50, p99 := percentile(calls, .5), percentile(calls, .99)
	begin := time.Time{}
	if d := h.denied.Load(); d != nil {
		begin = d.since // so that the rates of rules and keys are of the same time
	}
	lately := s.lately(begin)
	seconds := lately.span.Seconds()
	snap := &snapshot{
		ID: r.id, Calls: calls,
		Instance: instance{
			Name: h.instance, At: s.read.UnixMilli(), Started: h.started.UnixMilli(),
			Version: h.options.Version,
			Config:  h.loaded.Load().state(), Store: r.storeState(nil), P50: p50, P99: p99,
		},
		Rates: make(map[string]rates, len(lately.rules)),
	}
	if seconds > 0 {
		snap.Instance.Rate = tenth(float64(lately.total.decisions()) / seconds)
		snap.Requests = [2]float64{float64(lately.all[asked]) / seconds,
			float64(lately.all[refused]) / seconds}
	}
	for name, c := range lately.rules {
		if len(snap.Rates) == snapshotRules {
			break
		}
		snap.Rates[name] = c.rate(seconds)
	}
	snap.Denied = h.denied.Load().most(snapshotKeys)
	if lines := h.loaded.Load().lines; len(lines) <= snapshotLines {
		snap.Lines = lines
	}
	for step := s.history.newest - snapshotSteps; step < s.history.newest; step++ {
		snap.Steps = append(snap.Steps, s.history.step(step))
	}
	return snap
}
