package main

import (
	"bytes"
	"context"
	"fmt"
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
		code := exec(ctx, []string{verb, "--store", s.name}, nil, &out, &stderr)
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
