package redisstore_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Calls whose answers are lost are charged once, though the client has its usual retries. The
// callers get an error.
func TestChargedOnce(t *testing.T) {
	server := sharedServer(t)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = direct.Close() })
	lossy := redis.NewClient(&redis.Options{Addr: redistest.LoseAnswers(t, server.Addr, "EVALSHA",
		"evalsha"), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = lossy.Close() })

	r := headgate.Request{Key: "k", Limit: parse(t, "1/10h burst 1000"), Cost: 1}
	straight := newStore(t, direct)
	take(t, straight, r)
	for range 20 {
		if _, err := newStore(t, lossy).Take(t.Context(), r); err == nil {
			t.Fatal("a lost answer gave no error")
		}
	}
	r.Cost = 0
	if d := take(t, straight, r); d.Remaining != 1000-1-20 {
		t.Errorf("20 calls whose answers were lost left %d of 1000 after one more; want 979",
			d.Remaining)
	}
}

// A reset whose answer is lost is not sent again: the second would forget what was charged since.
func TestResetOnce(t *testing.T) {
	server := redistest.Start(t)
	lossy := redis.NewClient(&redis.Options{
		Addr: redistest.LoseAnAnswer(t, server.Addr, "del"), Protocol: 2, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = lossy.Close() })
	if err := newStore(t, lossy).Reset(t.Context(), "k", parse(t, "5/h")); err == nil {
		t.Error("a lost answer gave no error")
	}
	stats, err := server.Do(t.Context(), "INFO", "commandstats")
	if err != nil || !strings.Contains(stats, "cmdstat_del:calls=1,") {
		t.Errorf("the server ran %s, %v; want one del", stats, err)
	}
}
