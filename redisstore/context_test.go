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

// silent is the address of a server that says hello and then never answers. asked
// tells of each request that it did not answer.
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

// A caller whose context ends leaves at once, however patient the client is.
func TestContextEnds(t *testing.T) {
	addr, asked := silent(t)
	const patience = time.Hour
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience, DialTimeout: patience, PoolTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client)
	r := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}
	for name, call := range map[string]func(context.Context) error{
		"take": func(ctx context.Context) error { _, err := s.Take(ctx, r); return err },
		"take all": func(ctx context.Context) error {
			return s.TakeAll(ctx, []headgate.Request{r}, make([]headgate.Decision, 1))
		},
		"reset": func(ctx context.Context) error { return s.Reset(ctx, r.Key, r.Limit) },
		"ping":  s.Ping,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			if err := call(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v; want that of the context", err)
			}
			if err := call(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, where the context had ended before", err)
			}
			if len(asked) > 0 {
				t.Error("the server was asked for a context that had ended")
			}
		})
	}
}

func TestContextDeadline(t *testing.T) {
	addr, _ := silent(t)
	s, err := redisstore.Open("redis://" + addr + "?read_timeout=1h&dial_timeout=1h")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	_, err = s.Take(ctx, headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1})
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "redisstore: context deadline exceeded; there was no answer in time" {
		t.Errorf("error %v", err)
	}
}
