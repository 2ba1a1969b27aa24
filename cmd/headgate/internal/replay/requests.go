package replay

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// Request is a recorded request for [RunRequests].
type Request struct {
	At   time.Time
	Key  string
	Cost int64 // at least 1
}

// RunRequests replays recorded requests against the limits of c, in the order of their times.
// It uses Limits, Top and Detail of c, and reports By as given. Errors are those of [Run] for an
// invalid c, an invalid request, or a ctx that has ended.
func RunRequests(ctx context.Context, c Config, requests []Request) (*Report, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	for _, r := range requests {
		if err := r.validate(); err != nil {
			return nil, err
		}
	}
	byTime := func(a, b Request) int { return a.At.Compare(b.At) }
	if !slices.IsSortedFunc(requests, byTime) {
		requests = slices.Clone(requests)
		slices.SortStableFunc(requests, byTime)
	}
	tally := newTally(c.Limits, newNames())
	if c.Detail {
		tally.detail = newDetailing(len(c.Limits))
	}
	for i, r := range requests {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := tally.add(ctx, tally.record(r), r.Cost); err != nil {
			return nil, err
		}
	}
	report, err := tally.report(c, nil)
	if err != nil {
		return nil, err
	}
	report.Lines = report.Requests
	if c.Detail {
		report.Detail, err = tally.detailed(ctx, func(_ context.Context, f *follower) error {
			for _, r := range requests {
				f.request(tally.record(r), r.Cost)
			}
			return nil
		})
	}
	return report, err
}

func (r Request) validate() error {
	if at := r.At.UnixMicro(); at < 1 || at >= latest {
		return &headgate.InvalidError{
			Field: "time of a request", Value: fmt.Sprint(r.At), Want: "a time from 1970 to 2255",
		}
	}
	if r.Cost < 1 {
		return &headgate.InvalidError{
			Field: "cost of a request", Value: strconv.FormatInt(r.Cost, 10), Want: "at least 1",
		}
	}
	return nil
}

// record returns r as logs have it.
func (t *tally) record(r Request) record {
	return record{at: r.At.UnixMicro(), key: t.names.id([]byte(r.Key))}
}
