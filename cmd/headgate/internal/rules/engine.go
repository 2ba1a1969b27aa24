package rules

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// Engine decides requests by the rules of a [Set]. It is safe for use by many goroutines.
type Engine struct {
	store   headgate.Store
	permits concurrency.Store
	options Options
	active  atomic.Pointer[active]
	holds   holds

	questions sync.Pool // of *Question

	using sync.Mutex      // of what follows
	set   *Set            // as it was given to Use
	modes map[string]Mode // as they were given to Switch
}

// Options configures an [Engine].
type Options struct {
	// Overrides finds other limits of single keys. Default: none.
	Overrides Overrides

	// Observe is called with what each rule decided. It must be safe for concurrent use, and
	// quick. Default: none.
	Observe func(Event)

	// Answered is called once for each request that a rule applies to, and must be as quick.
	// Default: none.
	Answered func(Outcome)

	// Settled is called with each cost that is in a response, and must be as quick. Default: none.
	Settled func(Settlement)

	// Unmatched is called for each request that no rule matches; it must be quick. Default: none.
	Unmatched func()

	// PermitTTL is the time after which the permits of a process that died are free again.
	// Default: 30 s.
	PermitTTL time.Duration
}

// Overrides finds the override that is in force for a key of a rule.
type Overrides interface {
	Find(rule, key string) (Override, bool)
}

// Event is what a rule decided about a request.
type Event struct {
	Rule    *Rule
	Request *Request // nil: the caller of the API does not say; it must not be kept
	Key     string
	Cost    int64 // that was asked for; 0: a rule in Shadow peeked, as another had denied
	Outcome Outcome
	// Decision is that of the strictest limit. For a ban and for permits it has only times, and for
	// an error nothing.
	Decision headgate.Decision
	Banned   bool // the key is, and so the request is denied
	Err      error
}

// Outcome is the kind of an [Event].
type Outcome uint8

// The outcomes. If a rule denies a request, the others that would have granted it are not observed.
const (
	Allowed Outcome = iota
	Denied
	ShadowDenied // a rule in Shadow would have denied
	Failed       // the store is unavailable
)

// String returns the outcome as a label of metrics.
func (o Outcome) String() string {
	return [...]string{"allowed", "denied", "shadow_denied", "error"}[o]
}

// Denies reports whether the rule denied, or would have.
func (o Outcome) Denies() bool { return o == Denied || o == ShadowDenied }

// active is a Set with what the engine needs to decide by it.
type active struct {
	*Set

	hides   bool // a rule hides fields
	permits map[*rule]*concurrency.Limiter
	waiting map[string]*room // by the names of rules that hold requests
}

const defaultPermitTTL = 30 * time.Second

// New makes an Engine without rules. Permits may be nil if no rule has any.
func New(store headgate.Store, permits concurrency.Store, o Options) *Engine {
	if o.PermitTTL <= 0 {
		o.PermitTTL = defaultPermitTTL
	}
	e := &Engine{store: store, permits: permits, options: o, set: &Set{}}
	e.holds = newHolds(store)
	e.questions.New = func() any { return new(Question) }
	e.active.Store(&active{Set: e.set})
	return e
}

// Use makes s the rules of all requests from now on, in the modes of [Engine.Switch]. What is used
// under a rule is kept if s has a rule of that name.
func (e *Engine) Use(s *Set) {
	e.using.Lock()
	defer e.using.Unlock()
	e.set = s
	e.activate()
}

// activate makes e decide by its set and modes. e.using must be held.
func (e *Engine) activate() {
	s := e.set.inModes(e.modes)
	a := &active{Set: s, permits: make(map[*rule]*concurrency.Limiter)}
	a.waiting = s.waitingRooms(e.active.Load().waiting)
	for _, r := range s.rules {
		a.hides = a.hides || r.Reply.Hides != 0
		if r.Permits == 0 || r.Mode == Off {
			continue
		}
		l, err := concurrency.New(e.permits, r.Permits, e.options.PermitTTL)
		if err != nil {
			panic(err) // cannot happen: NewSet validates the number of permits
		}
		a.permits[r] = l
	}
	e.active.Store(a)
}

// Ending ends with [Engine.EndHolds].
func (e *Engine) Ending() context.Context { return e.holds.ending }

// NoRuleError is returned for the name of a rule that does not exist.
type NoRuleError struct{ Name string }

// Error returns the name.
func (e *NoRuleError) Error() string {
	return fmt.Sprintf("rules: there is no rule %q", e.Name)
}

// Terms are what a rule says about one of its keys, after overrides.
type Terms struct {
	Rule    *Rule // the caller must not change it
	Mode    Mode
	Limits  []headgate.Limit // under the names of their state; the caller must not change them
	Permits int64
	Banned  bool
	Until   time.Time // of the ban; zero: without end
}

// Terms returns what applies to a key of a rule. It returns a [NoRuleError] if there is no such
// rule.
func (e *Engine) Terms(rule, key string) (Terms, error) {
	r := e.active.Load().byName[rule]
	if r == nil {
		return Terms{}, &NoRuleError{Name: rule}
	}
	a := e.ask(r, key)
	return Terms{
		Rule: &r.Rule, Mode: r.Mode, Limits: a.limits, Permits: r.Permits,
		Banned: a.banned, Until: a.until,
	}, nil
}

// StateLimits returns the limits under which a key of the rule may have state: those of t, and
// those of the rule that an override replaces.
func (t *Terms) StateLimits() []headgate.Limit {
	limits := t.Limits
	for _, l := range Named(t.Rule.Name, t.Rule.Limits) {
		if !slices.Contains(limits, l) {
			limits = append(slices.Clip(limits), l)
		}
	}
	return limits
}

// Reset puts a key of a rule back in its initial state, under all limits that [Terms.StateLimits]
// lists, and returns the key. After an error of the store, some may have been reset. What is wrong
// with rule or key is an [AskError].
func (e *Engine) Reset(ctx context.Context, rule, key string) (string, error) {
	q := e.question(Order{})
	defer q.free()
	q.named = true
	if err := q.resolve(Ask{Rule: rule, Key: key}); err != nil {
		return key, &AskError{Err: err}
	}
	a := &q.asks[0]
	limits := (&Terms{Rule: &a.rule.Rule, Limits: a.limits}).StateLimits()
	return a.key, e.reset(ctx, a.key, limits)
}

func (e *Engine) reset(ctx context.Context, key string, limits []headgate.Limit) error {
	for _, l := range limits {
		if err := e.store.Reset(ctx, key, l); err != nil {
			return err
		}
	}
	return nil
}
