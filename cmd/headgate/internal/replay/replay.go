// Package replay runs recorded requests against limits that are not live yet.
//
// [Run] reads access logs, sorts their lines by time, decides each request at its recorded time
// with the real limiter, and reports which keys would have been denied, for each limit:
//
//	limit, err := headgate.ParseLimit("60/m")
//	...
//	report, err := replay.Run(ctx, replay.Config{
//		Reading: replay.Reading{By: replay.ByIP}, Limits: []headgate.Limit{limit},
//	}, replay.Log{Name: "access.log", Reader: file})
//
// [Size] finds the limits that logs need.
//
// A log is read once, from its beginning to its end. Memory grows with the number of different
// keys (about 160 bytes each, for a short key and one limit), but not with the number of lines.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate"
)

// DefaultReorder is a [Reading.Reorder] that fits most logs.
const DefaultReorder = time.Minute

// DefaultTop is a [Reading.Top] that fits a screen.
const DefaultTop = 10

// Reading is how [Run] and [Size] read logs. Only By is required.
type Reading struct {
	// By makes the key of each request.
	By By

	// Format is the format of all logs. Default: detected for each line.
	Format Format

	// Names are the names of members of JSON. Default: those in use.
	Names Names

	// Reorder is how late a line may come and still be sorted by its time. A line that comes
	// later is decided at a time later than its own, and counted as late. At most a million
	// requests of a log are held for sorting.
	Reorder time.Duration

	// Top is how many of the most denied keys are listed for each limit.
	Top int

	// Progress, if not nil, is called from time to time with the number of bytes read from
	// all logs so far; of a compressed log, of compressed bytes.
	Progress func(bytes int64)
}

// Config configures [Run].
type Config struct {
	Reading

	// Limits are tested side by side, each by itself: a request that one denies still counts
	// for the others. At least one is required, and all must be valid.
	Limits []headgate.Limit

	// Detail adds a [Detail] to the report.
	Detail bool

	// Evidence are keys of the logs that are described in the Detail.
	Evidence []LogKey
}

// Log is one access log: plain text, or the same compressed by gzip or bzip2.
type Log struct {
	Name   string // for reports and errors
	Reader io.Reader
}

// Run replays logs against the limits of c. The logs are merged by time;
// requests of the same microsecond keep the order of the logs and their lines.
//
// Lines that cannot be used are skipped and counted in the Report. Run returns an error if ctx
// ends, a log cannot be read to its end, or a log has no line in a known format. It returns soon
// after ctx ends, unless a Reader blocks.
func Run(ctx context.Context, c Config, logs ...Log) (*Report, error) {
	tally := newTally(c.Limits, newKeyIDs())
	to := sink{names: tally.names, use: func(r record) error { return tally.add(ctx, r) }}
	if c.Detail {
		tally.detail = newDetailing(len(c.Limits))
		to.facets, to.saw = tally.detail.facets, newWitness(c.Evidence)
	}
	sources, err := read(ctx, c.Reading, to, logs)
	if err != nil {
		return nil, err
	}
	report, err := tally.report(c, sources)
	if err != nil || !c.Detail {
		return report, err
	}
	report.Detail = tally.detailed()
	report.Detail.Evidence = tally.evidence(c.Evidence, to.saw)
	return report, nil
}

// sink is where the requests of logs go.
type sink struct {
	names  *keyIDs
	facets *facets  // nil unless they are counted
	saw    *witness // nil unless there are keys to describe
	use    func(record) error
}

// read gives each request of logs to a sink, in the order of time.
func read(ctx context.Context, c Reading, to sink, logs []Log) ([]*source, error) {
	progress := &progress{ended: ctx.Err, report: c.Progress}
	sources := make([]*source, len(logs))
	for i, log := range logs {
		sources[i] = newSource(log, c, to, progress)
	}
	merged, err := newMerge(sources)
	for err == nil {
		var r record
		var ok bool
		if r, ok, err = merged.next(); !ok {
			break
		}
		err = to.use(r)
	}
	return sources, err
}

// progress counts the bytes read from all logs, and ends reading when ctx ends.
type progress struct {
	ended  func() error
	report func(int64)
	bytes  int64
}

// counted is a log's Reader as stored, before it is decompressed.
type counted struct {
	io.Reader
	*progress
}

func (c counted) Read(b []byte) (int, error) {
	if err := c.ended(); err != nil {
		return 0, err
	}
	n, err := c.Reader.Read(b)
	c.bytes += int64(n)
	if c.report != nil {
		c.report(c.bytes)
	}
	return n, err
}

// failed adds the name of the log to err, unless ctx has ended.
func failed(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
