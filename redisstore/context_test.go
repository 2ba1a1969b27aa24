package redisstore_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// silent is the address of a server that accepts connections and never answers. asked receives
// when a request arrives.
func silent(t *testing.T) (addr string, asked <-chan struct{}) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	requests := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go func() {
				if _, err := conn.Read(make([]byte, 4096)); err == nil {
					requests <- struct{}{}
				}
			}()
		}
	}()
	return listener.Addr().String(), requests
}

// patientStore is a store at addr whose client waits for an hour.
func patientStore(t *testing.T, addr string) *redisstore.Store {
	t.Helper()
	const patience = time.Hour
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience,
		DialTimeout: patience, PoolTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	return newStore(t, client)
}

// A call returns when its context ends, whatever the timeouts of the client are.
func TestContextEnds(t *testing.T) {
	r := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}
	for name, call := range map[string]func(context.Context, *redisstore.Store) error{
		"take": func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Take(ctx, r)
			return err
		},
		"take all": func(ctx context.Context, s *redisstore.Store) error {
			return s.TakeAll(ctx, []headgate.Request{r}, make([]headgate.Decision, 1))
		},
		"reset": func(ctx context.Context, s *redisstore.Store) error {
			return s.Reset(ctx, r.Key, r.Limit)
		},
		"ping": func(ctx context.Context, s *redisstore.Store) error { return s.Ping(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			addr, asked := silent(t)
			s := patientStore(t, addr)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			err := call(ctx, s)
			if !errors.Is(err, context.Canceled) || errors.Is(err, redisstore.ErrNotSent) {
				t.Errorf("error %v; want that of the context, and that it was sent", err)
			}
			if err := call(ctx, s); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, where the context had ended before", err)
			}
			if len(asked) > 0 {
				t.Error("the server was asked for a context that had ended")
			}
		})
	}
}

// So does a TakeAll of keys that may be on several servers.
func TestContextEndsForGroup(t *testing.T) {
	addr, asked := silent(t)
	const patience = time.Hour
	client := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": addr}, ReadTimeout: patience, DialTimeout: patience,
		PoolTimeout: patience, HeartbeatFrequency: patience,
	})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client)
	rs := []headgate.Request{{Key: "a", Limit: parse(t, "10/s"), Cost: 1},
		{Key: "b", Limit: parse(t, "10/s"), Cost: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := s.TakeAll(ctx, rs, make([]headgate.Decision, 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want that of the context", err)
	}
}

func TestContextDeadline(t *testing.T) {
	addr, _ := silent(t)
	s, err := redisstore.Open("redis://" + addr + "?read_timeout=1h&dial_timeout=1h")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for within := 10 * time.Millisecond; within < time.Minute; within *= 2 {
		ctx, stop := context.WithTimeout(t.Context(), within)
		_, err = s.Take(ctx, headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1})
		stop()
		if !errors.Is(err, redisstore.ErrNotSent) { // as on a busy machine
			break
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) ||
		err.Error() != "redisstore: context deadline exceeded; there was no answer in time" {
		t.Errorf("error %v", err)
	}
}

// A call whose context had ended before counts as not sent, once.
func TestEndedBefore(t *testing.T) {
	addr, _ := silent(t)
	s := patientStore(t, addr)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}
	for range 3 {
		if _, err := s.Take(ctx, r); !errors.Is(err, redisstore.ErrNotSent) {
			t.Errorf("error %v", err)
		}
	}
	if got := s.Stats(); got != (redisstore.Stats{NotSent: 3}) {
		t.Errorf("stats %+v; want 3 that were not sent, and nothing else", got)
	}
}
