package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestCallerIsWokenAfterTheSubscriptionWasCut(t *testing.T) {
	client := newClient(t)
	other := redis.NewClient(&redis.Options{Addr: client.Options().Addr})
	t.Cleanup(func() { _ = other.Close() })
	held, l := newPermits(t, newStore(t, other), 1), newPermits(t, newStore(t, client), 1)
	subscribers := func() int {
		return strings.Count(other.ClientList(t.Context()).Val(), " sub=1 ")
	}
	p := acquirePermit(t, held)
	woken := make(chan error)
	go func() {
		_, err := l.Wait(t.Context(), "k")
		woken <- err
	}()
	until(t, "it has subscribed", func() bool { return subscribers() == 1 })
	for range 3 {
		other.Do(t.Context(), "client", "kill", "type", "pubsub")
		until(t, "it has subscribed again", func() bool { return subscribers() == 1 })
	}
	other.Do(t.Context(), "client", "kill", "type", "pubsub")
	if err := p.Release(t.Context()); err != nil { // perhaps while there is no connection
		t.Error(err)
	}
	if err := <-woken; err != nil {
		t.Error(err)
	}
	until(t, "the subscription has ended", func() bool { return subscribers() == 0 })
}

func TestChannelsAreThoseOfKeysWithCallersThatWait(t *testing.T) {
	client := newClient(t)
	l := newPermits(t, newStore(t, client), 1)
	ended := make(chan error)
	wait := func(key string) context.CancelFunc {
		if p, _, err := l.Acquire(t.Context(), key); p == nil || err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := l.Wait(ctx, key)
			ended <- err
		}()
		return cancel
	}
	leave := []context.CancelFunc{wait("a"), wait("b"), wait("c")}
	for left := len(leave); ; left-- {
		until(t, "as many channels as keys",
			func() bool { return len(client.PubSubChannels(t.Context(), "*").Val()) == left })
		if left == 0 {
			return
		}
		leave[left-1]()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
