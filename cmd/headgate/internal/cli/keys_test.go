package cli

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
	ctx, end := context.WithCancel(t.Context())
	out := interrupting{end: end}
	var stderr bytes.Buffer
	code := exec(ctx, []string{"keys", "--store", s.Name}, nil, &out, &stderr)
	if printed := bytes.Count(out.Bytes(), []byte("\n")); printed == 0 || printed >= all {
		t.Errorf("%d lines", printed)
	}
	if code != exitInterrupted || stderr.String() != "headgate: interrupted; not all keys are listed\n" {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}
