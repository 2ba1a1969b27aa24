package report

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// MaxLimits is the maximum number of limits on a page.
const MaxLimits = 20

// Build describes a report to make.
type Build struct {
	Kind    string
	Command string
	Made    time.Time

	// Limits are replayed; those of a KindSize are found.
	Limits []headgate.Limit

	// Size says how to read the logs, and what to find. For a KindReplay, its Rates are those of
	// Limits.
	Size replay.SizeConfig

	// Logs returns the logs, from their beginning. It is called for each of two readings, which
	// must give the same.
	Logs func(reading int) ([]replay.Log, error)
}

// Run reads the logs twice: to find which limits they need, and to replay them in detail.
func (b *Build) Run(ctx context.Context) (*Data, error) {
	d := &Data{Version: Version, Made: b.Made, Command: b.Command, Kind: b.Kind, Limits: []Limit{}}
	if err := b.size(ctx, d); err != nil {
		return nil, err
	}
	limits, names := b.Limits, slices.Repeat([]string{""}, len(b.Limits))
	if b.Kind == KindSize && d.Size.Requests >= fewRequests {
		limits, names = found(d.Size)
	}
	for i, l := range limits {
		d.Limits = append(d.Limits, newLimit(names[i], l, d.Size.By))
	}
	if len(limits) == 0 && d.Size.StandOut == nil { // nothing to replay, and no key to describe
		d.Replay = &replay.Report{
			Traffic: d.Size.Traffic, Limits: []replay.Result{},
			Detail: &replay.Detail{
				Keys: [][]replay.DeniedKey{}, DeniedKeysTotal: []int64{},
			},
		}
		return d, nil
	}
	return d, b.replay(ctx, d, limits)
}

// maxSpare is the maximum number of limits that are found to spare keys that stand out.
const maxSpare = 5

// reserve is the name of the limit that is twice what the keys need that do not stand out.
const reserve = "reserve"

// found returns the proposals, each limit once, and twice the smallest limit that denies nothing to
// keys that do not stand out: it is recommended, since a client may be busier than in the log. If
// keys stand out, it also returns twice what each needs, and of the other limits that deny the same
// keys only the first, which has the most reserve.
func found(r *replay.SizeReport) (limits []headgate.Limit, names []string) {
	var denied []int64 // keys, by limit: a smaller limit denies the same keys, and perhaps more
	add := func(l headgate.Limit, name string, keys int64) {
		if i := slices.Index(limits, l); i >= 0 {
			names[i] += ", " + name
		} else if r.StandOut == nil || name == reserve || !slices.Contains(denied, keys) {
			limits, names, denied = append(limits, l), append(names, name), append(denied, keys)
		}
	}
	if r.StandOut != nil {
		for _, k := range r.StandOut.Keys { // those that need most first
			l := replay.Reserve(k.Need)
			if n := denies(r, l); n > 0 && len(limits) < maxSpare {
				add(l, "spare", n)
			}
		}
	}
	if need, twice := r.Needed(); need != twice {
		add(twice, reserve, denies(r, twice))
	}
	for _, p := range r.Proposals {
		add(p.Limit, p.Name, p.DeniedKeys)
	}
	return limits, names
}

// denies returns how many keys l denies, if it denies only keys that stand out.
func denies(r *replay.SizeReport, l headgate.Limit) (keys int64) {
	if r.StandOut != nil {
		for _, k := range r.StandOut.Keys {
			if k.Need.Refill() > l.Refill() {
				keys++
			}
		}
	}
	return keys
}

// size reads the logs for the first time.
func (b *Build) size(ctx context.Context, d *Data) error {
	logs, err := b.Logs(1)
	if err != nil {
		return err
	}
	c := b.Size
	if b.Kind == KindReplay {
		c.Rates = rates(b.Limits)
	}
	d.Size, err = replay.Size(ctx, c, logs...)
	if err != nil {
		return err
	}
	if b.Kind == KindReplay && len(c.Rates) == 0 {
		d.Size.Rates = []replay.SmallestLimits{} // those of the proposals, which are not shown
	}
	return nil
}

// rates returns the token buckets among limits, one for each rate.
func rates(limits []headgate.Limit) (rates []headgate.Limit) {
	for _, l := range limits {
		same := func(o headgate.Limit) bool {
			return o.Refill() == l.Refill() && o.Period() == l.Period()
		}
		if l.Algorithm() == headgate.AlgorithmTokenBucket && !slices.ContainsFunc(rates, same) {
			rates = append(rates, l.Named(""))
		}
	}
	return rates
}

// replay reads the logs for the second time.
func (b *Build) replay(ctx context.Context, d *Data, limits []headgate.Limit) error {
	logs, err := b.Logs(2)
	if err != nil {
		return err
	}
	runtime.GC() // or else what the first reading left takes memory until the heap has doubled
	d.Replay, err = replay.Run(ctx, replay.Config{
		Reading: b.Size.Reading, Limits: limits, Detail: true, Evidence: standOut(d.Size),
	}, logs...)
	if err != nil {
		return err
	}
	return sameLogs(&d.Size.Traffic, &d.Replay.Traffic)
}

// standOut returns the keys that stand out.
func standOut(r *replay.SizeReport) (keys []replay.LogKey) {
	if r.StandOut == nil {
		return nil
	}
	for _, k := range r.StandOut.Keys {
		keys = append(keys, k.Key)
	}
	return keys
}

// sameLogs returns an error if two readings of the logs differ.
func sameLogs(first, second *replay.Traffic) error {
	if reflect.DeepEqual(first, second) {
		return nil
	}
	what := "a log"
	for i, f := range first.Files {
		if f != second.Files[i] {
			what = f.Name
			break
		}
	}
	return fmt.Errorf("%s: changed while it was read twice for the report; "+
		"run the command again", what)
}
