package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A server that hangs is noticed in some hundred milliseconds, unless the URL says otherwise.
func TestTimeoutsOfOpen(t *testing.T) {
	timeouts := func(client redis.UniversalClient) [3]time.Duration {
		if cluster, ok := client.(*redis.ClusterClient); ok {
			o := cluster.Options()
			return [3]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout}
		}
		o := client.(*redis.Client).Options()
		return [3]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout}
	}
	const ms = time.Millisecond
	for url, want := range map[string][3]time.Duration{
		"redis://h":                                    {400 * ms, 400 * ms, 400 * ms},
		"redis+cluster://a:1,b:2":                      {400 * ms, 400 * ms, 400 * ms},
		"redis+sentinel://a:1/m":                       {400 * ms, 400 * ms, 400 * ms},
		"redis://h?read_timeout=2s":                    {400 * ms, 2000 * ms, 2000 * ms},
		"redis://h?dial_timeout=1s&write_timeout=5ms":  {1000 * ms, 400 * ms, 5 * ms},
		"redis+cluster://a:1?dial_timeout=3s":          {3000 * ms, 400 * ms, 400 * ms},
		"redis+sentinel://a:1/m?read_timeout=7":        {400 * ms, 7000 * ms, 7000 * ms},
		"redis://h?dial_timeout=0&read_timeout=100000": {-1, 100000 * time.Second, 100000 * time.Second},
	} {
		s, err := redisstore.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		client, _ := s.Client()
		if got := timeouts(client); got != want {
			t.Errorf("%s: dial, read, write %s; want %s", url, got, want)
		}
		_ = s.Close()
	}
}

// A call without a deadline returns, though the server never answers.
func TestAServerThatHangsGivesAnError(t *testing.T) {
	addr, _ := silent(t)
	s, err := redisstore.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Take(context.Background(), headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1})
	if err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("error %v", err)
	}
}

// The error of a deadline names the cause, if there is no connection.
func TestTheErrorNamesWhyThereIsNoConnection(t *testing.T) {
	server := redistest.Start(t)
	for _, scheme := range []string{"redis", "redis+cluster"} {
		s, err := redisstore.Open(scheme + "://" + unused(t))
		if err != nil {
			t.Fatal(err)
		}
		r := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}
		until(t, "the cause "+scheme, func() bool { // the first deadline may be too short for a dial
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := s.Take(ctx, r)
			return errors.Is(err, context.DeadlineExceeded) &&
				strings.HasPrefix(err.Error(), "redisstore: context deadline exceeded; no connection: dial tcp") &&
				strings.Contains(err.Error(), "refused")
		})
		_ = s.Close()
	}
	s, err := redisstore.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// Once a connection was made, an error does not name the dial that had failed before.
func TestADialThatSucceedsEndsTheReasonWhyThereIsNoConnection(t *testing.T) {
	addr := unused(t)
	s, err := redisstore.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Fatalf("nobody listens: %v", err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr) // and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	r := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}
	until(t, "an error without the dial", func() bool { // the first deadline may be too short for one
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := s.Take(ctx, r)
		return errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "no connection")
	})
}
