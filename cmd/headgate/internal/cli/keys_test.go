package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate"
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
	for _, verb := range []string{"keys", "top"} {
		ctx, end := context.WithCancel(t.Context())
		out := interrupting{end: end}
		var stderr bytes.Buffer
		code := exec(ctx, []string{verb, "--store", s.Name}, nil, &out, &stderr)
		printed := bytes.Count(out.Bytes(), []byte("\n"))
		switch {
		case printed == 0 || printed >= all:
			t.Errorf("%s: %d lines", verb, printed)
		case verb == "top" && (code != exitAllowed || stderr.Len() > 0):
			t.Errorf("top: exit %d, %s", code, stderr.String())
		case verb == "keys" && (code != exitInterrupted ||
			stderr.String() != "headgate: interrupted; not all keys are listed\n"):
			t.Errorf("keys: exit %d, %s", code, stderr.String())
		}
	}
}

// The lines of a terminal that a text takes, with those that are wrapped.
func TestScreenLines(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a\n": 1, "abcde\n": 1, "abcdef\n": 2, "\n\n": 2, "äöüäö\nabcdefghijk\n": 4,
	} {
		if got := screenLines(text, 5); got != want {
			t.Errorf("%q takes %d lines; want %d", text, got, want)
		}
	}
}

// TestColumns: a long limit moves the columns of all rows of a look.
func TestColumns(t *testing.T) {
	var s snapshot
	for _, limit := range []string{"5/m", "checkout=10000/h burst 20", "address=60/m burst 10"} {
		l, err := headgate.ParseLimit(limit)
		if err != nil {
			t.Fatal(err)
		}
		k := listedKey{limit: l, known: true}
		k.Key = "ip:192.0.2.1"
		s.top = append(s.top, k)
	}
	var out strings.Builder
	if err := (&topFlags{once: true}).show(&out, &s); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	for _, line := range lines {
		if at := strings.Index(line, "ip:192.0.2.1"); at != strings.Index(lines[0], "ip:192.0.2.1") {
			t.Errorf("the keys are not below each other:\n%s", out.String())
		}
	}
}
