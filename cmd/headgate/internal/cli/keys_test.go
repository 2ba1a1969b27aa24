package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/concurrency"
)

// interrupting is an output that ends a context at its first write.
type interrupting struct {
	bytes.Buffer

	end context.CancelFunc
}

func (i *interrupting) Write(b []byte) (int, error) {
	i.end()
	return i.Buffer.Write(b)
}

// An interrupt ends a listing between two batches, and what was printed is not all.
func TestKeysInterrupted(t *testing.T) {
	s := openRedis(t)
	limit := headgate.SlidingLog(5, 1e9*3600)
	const all = 1000
	for i := range all {
		r := headgate.Request{Key: fmt.Sprint(i), Limit: limit, Cost: 1}
		if _, err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	out := interrupting{end: end}
	var stderr bytes.Buffer
	code := exec(ctx, []string{"keys", "--store", s.Name}, nil, &out, &stderr)
	if printed := bytes.Count(out.Bytes(), []byte("\n")); printed == 0 || printed >= all {
		t.Errorf("%d lines", printed)
	}
	if code != command.ExitInterrupted || stderr.String() != "headgate: interrupted; not all keys are listed\n" {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}

// The keys of a page are below each other, and --denied names what it cannot decide.
func TestKeysDenied(t *testing.T) {
	s := openRedis(t)
	long := headgate.Monthly(1_000_000).Named("a-long-name-of-a-limit")
	for i := range 20 {
		for _, limit := range []headgate.Limit{
			headgate.SlidingLog(1, time.Hour), headgate.PerHour(1).Named("b"), long,
		} {
			r := headgate.Request{Key: fmt.Sprint("ip:", i), Limit: limit, Cost: limit.Capacity()}
			if _, err := s.Take(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"c", "d"} {
		r := headgate.Request{Key: "ip:0", Limit: headgate.PerHour(1).Named(name), Cost: 1}
		if _, err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	slots, err := concurrency.New(s.Redis, 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := slots.Acquire(t.Context(), "ip:busy"); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]struct {
		lines  int
		stderr string
	}{
		"": {63, ""},
		"--denied": {20, "headgate: left out keys of a-long-name-of-a-limit month " +
			"calendar-window, b, c, 1 more, because the store does not know their numbers; " +
			"give a limit with its numbers by --limit, such as --limit login=5/h\n"},
		"--denied --limit b=1/h --limit a-long-name-of-a-limit=1000000/month": {40, ""},
	} {
		var out, stderr bytes.Buffer
		args := append([]string{"keys", "--store", s.Name}, strings.Fields(flags)...)
		code := exec(t.Context(), args, nil, &out, &stderr)
		if code != command.ExitAllowed || stderr.String() != want.stderr {
			t.Errorf("%s: exit %d, %s", flags, code, stderr.String())
		}
		columns := map[int]int{}
		for line := range strings.Lines(out.String()) {
			columns[strings.LastIndex(line, " ip:")]++
		}
		if len(columns) != 1 || strings.Count(out.String(), "\n") != want.lines {
			t.Errorf("%s: keys in the columns %v of\n%s", flags, columns, &out)
		}
	}
}
