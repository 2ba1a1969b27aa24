// Package replay runs recorded requests against limits that are not live yet.
//
// [Run] reads access logs, puts their lines in the order of time, asks the real
// limiter about each request at its recorded time, and reports who would have
// been denied, by each of the limits side by side:
//
//	limit, err := headgate.ParseLimit("60/m")
//	...
//	report, err := replay.Run(ctx, replay.Config{Limits: []headgate.Limit{limit}},
//		replay.Log{Name: "access.log", Reader: file})
//
// A log is read once, from front to back. Memory grows with the number of
// distinct keys (about 160 bytes each for a short key and one limit), never with
// the number of lines.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate"
)

// DefaultReorder is how late a line may be and still be put in its place,
// unless [Config.Reorder] says otherwise.
const DefaultReorder = time.Minute

// DefaultTop is how many of the most denied keys a [Result] names, unless
// [Config.Top] says otherwise.
const DefaultTop = 10

// Config says what to replay the logs against. Only Limits is required.
type Config struct {
	// Limits are tried side by side, each on its own: a request denied by one is
	// still a request to the next. At least one is required.
	Limits []headgate.Limit

	// By makes the key of each request. The zero By is the client address.
	By By

	// Format is the format of every log. The zero Format guesses it for each log
	// from its first line that can be read.
	Format Format

	// Reorder is how much earlier than the newest line before it a line may be
	// and still be put in its place. A line later than that runs at the time
	// reached, and is counted. At most a million requests of a log are held for
	// this. 0 means DefaultReorder, below 0 that no line is put back.
	Reorder time.Duration

	// Top is how many of the most denied keys are named for each limit. 0 means
	// DefaultTop, below 0 none.
	Top int

	// Progress, if not nil, is called now and then with the number of bytes read
	// so far from all logs, as they are stored: of a compressed log, compressed.
	Progress func(bytes int64)
}

// Log is one access log: plain text, or the same compressed by gzip.
type Log struct {
	Name   string // for reports and errors
	Reader io.Reader
}

// Run replays logs against the limits of c. The logs are merged by time;
// requests of the same microsecond keep the order of the logs and their lines.
//
// Lines that cannot be used are skipped and counted in the Report. An error
// means that there is no report: c is not valid ([headgate.InvalidError]), ctx
// ended, a log could not be read to its end, or held no line in a known format.
// Run returns soon after ctx ends, unless a Reader blocks.
func Run(ctx context.Context, c Config, logs ...Log) (*Report, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	names := newNames()
	progress := &progress{ended: ctx.Err, report: c.Progress}
	sources := make([]*source, len(logs))
	for i, log := range logs {
		sources[i] = newSource(log, c, names, progress)
	}
	tally := newTally(c.Limits, names)
	merged, err := newMerge(sources)
	for err == nil {
		var r record
		var ok bool
		if r, ok, err = merged.next(); !ok {
			break
		}
		err = tally.add(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return tally.report(c, sources)
}

// fill puts the defaults into c, or says what is wrong with it.
func (c *Config) fill() error {
	if len(c.Limits) == 0 {
		return &headgate.InvalidError{Field: "limits", Value: "empty", Want: "at least one limit"}
	}
	for _, l := range c.Limits {
		if err := l.Validate(); err != nil {
			return err
		}
	}
	if c.Format > W3C {
		return &headgate.InvalidError{Field: "format", Value: fmt.Sprint(uint8(c.Format)), Want: formatNames}
	}
	if c.Reorder == 0 {
		c.Reorder = DefaultReorder
	}
	c.Reorder = max(c.Reorder, 0)
	if c.Top == 0 {
		c.Top = DefaultTop
	}
	c.Top = max(c.Top, 0)
	if len(c.By.parts) == 0 {
		c.By = ByIP
	}
	return nil
}

// progress counts what was read of all logs, and ends reading when ctx ends.
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

// failed gives err the name of the log, unless reading was stopped on purpose.
func failed(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
