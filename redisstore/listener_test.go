package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestWokenByOthers: another process, as far as the server can tell, gives back what this
// one waits for, in a Cluster as on one server. It listens as long as it waits.
func TestWokenByOthers(t *testing.T) {
	cluster := redistest.StartCluster(t)
	for name, connect := range map[string]func() redis.UniversalClient{
		"single": func() func() redis.UniversalClient {
			addr := redistest.Start(t).Addr
			return func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr}) }
		}(),
		"cluster": func() redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs})
		},
	} {
		t.Run(name, func(t *testing.T) {
			holder, waiter := connect(), connect()
			t.Cleanup(func() { _, _ = holder.Close(), waiter.Close() })
			held, c := newConcurrency(t, newStore(t, holder), 1), newConcurrency(t, newStore(t, waiter), 1)
			for range 20 {
				f := begin(t, held)
				woken := make(chan error)
				go func() {
					f, err := c.Wait(t.Context(), "k")
					if err == nil {
						err = f.Release(t.Context())
					}
					woken <- err
				}()
				until(t, "somebody waits", func() bool { return c.Waiting("k") == 1 })
				if err := f.Release(t.Context()); err != nil {
					t.Error(err)
				}
				select {
				case err := <-woken:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("not woken; the lease has an hour")
				}
			}
		})
	}
}

// TestListenerReconnects: the connection of who listens is cut, and he hears all the same.
// When nobody waits, nobody listens.
func TestListenerReconnects(t *testing.T) {
	client := newClient(t)
	other := redis.NewClient(&redis.Options{Addr: client.Options().Addr})
	t.Cleanup(func() { _ = other.Close() })
	held, c := newConcurrency(t, newStore(t, other), 1), newConcurrency(t, newStore(t, client), 1)
	listeners := func() int {
		return strings.Count(other.ClientList(t.Context()).Val(), " sub=1 ")
	}
	f := begin(t, held)
	woken := make(chan error)
	go func() {
		_, err := c.Wait(t.Context(), "k")
		woken <- err
	}()
	until(t, "one listens", func() bool { return listeners() == 1 })
	for range 3 {
		other.Do(t.Context(), "client", "kill", "type", "pubsub")
		until(t, "one listens again", func() bool { return listeners() == 1 })
	}
	other.Do(t.Context(), "client", "kill", "type", "pubsub")
	if err := f.Release(t.Context()); err != nil { // maybe while nobody can hear it
		t.Error(err)
	}
	if err := <-woken; err != nil {
		t.Error(err)
	}
	until(t, "nobody listens", func() bool { return listeners() == 0 })
}

// TestListensToWhatIsWaitedFor leaves the channel of a key that nobody waits for any more,
// while another is waited for.
func TestListensToWhatIsWaitedFor(t *testing.T) {
	client := newClient(t)
	c := newConcurrency(t, newStore(t, client), 1)
	ended := make(chan error)
	wait := func(key string) context.CancelFunc {
		if f, _, err := c.Acquire(t.Context(), key); f == nil || err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := c.Wait(ctx, key)
			ended <- err
		}()
		return cancel
	}
	leave := []context.CancelFunc{wait("a"), wait("b"), wait("c")}
	for left := len(leave); ; left-- {
		until(t, "as many channels as keys", func() bool { return len(client.PubSubChannels(t.Context(), "*").Val()) == left })
		if left == 0 {
			return
		}
		leave[left-1]()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
