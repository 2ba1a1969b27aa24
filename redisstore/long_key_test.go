package redisstore_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// Redis has the hash of a key above 1 KiB, for limits and permits alike, and the key itself up to
// that. Whoever sends a login name of megabytes takes no more memory than others do.
func TestLongKeys(t *testing.T) {
	s := newStore(t, newClient(t))
	l, other := parse(t, "10/h"), parse(t, "b=10/h sliding-log")
	longest := "login:" + strings.Repeat("x", 1024-6)
	for _, key := range []string{longest, longest + "x", longest + "y", strings.Repeat("%}", 600),
		strings.Repeat("z", 8<<20)} {
		stored := key
		if len(key) > 1024 {
			sum := sha256.Sum256([]byte(key))
			stored = "sha256:" + hex.EncodeToString(sum[:])
		}
		take(t, s, headgate.Request{Key: key, Limit: l, Cost: 3})
		rs := []headgate.Request{{Key: key, Limit: l, Cost: 1}, {Key: key, Limit: other, Cost: 1}}
		if err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, 2)); err != nil {
			t.Fatal(err)
		}
		if got := s.StoredKey(key); got != stored {
			t.Errorf("%.40q is stored as %.80q; want %.80q", key, got, stored)
		}
		for _, name := range []string{key, stored} {
			if d := take(t, s, headgate.Request{Key: name, Limit: l}); d.Remaining != 6 {
				t.Errorf("%.40q: %+v", name, d)
			}
		}
		if found := scan(t, s, stored); len(found) != 2 || found[0].Key != stored {
			t.Errorf("%.40q is listed as %.200v", key, found)
		}
		r := concurrency.Request{Key: key, Limit: 1, TTL: time.Hour}
		for i, want := range []bool{true, false} {
			r.ID[0] = byte(i + 1)
			if d, err := s.AcquirePermit(t.Context(), r); err != nil || d.Allowed() != want {
				t.Errorf("permit %d of %.40q: %+v, %v", i, key, d, err)
			}
		}
		if err := s.Reset(t.Context(), key, l); err != nil {
			t.Fatal(err)
		}
		if d := take(t, s, headgate.Request{Key: key, Limit: l}); d.Remaining != 10 {
			t.Errorf("%.40q after a reset: %+v", key, d)
		}
	}
	names, err := s.Client().Keys(t.Context(), s.Prefix()+"*").Result()
	if err != nil || len(names) != 5*2 { // a log and permits each
		t.Errorf("Redis has %d keys, %v", len(names), err)
	}
	for _, name := range names {
		if len(name) > 1100 {
			t.Errorf("Redis has a key of %d bytes", len(name))
		}
	}
}
