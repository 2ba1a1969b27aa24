package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// If a context ends before a connection is made, the error has the last dial error, whether the
// request was sent or not.
func TestNoConnection(t *testing.T) {
	for _, c := range []struct{ name, url, word string }{
		{"refused", "redis://" + unused(t) + "?max_retries=-1", "connection refused"},
		{"TLS against a plain port", "rediss://" + sharedServer(t).Addr + "?dial_timeout=50ms", "the server may not support TLS"},
		{"Cluster", "redis+cluster://" + unused(t) + "?dialer_retries=1", "connection refused"},
		{"Sentinels", "redis+sentinel://" + unused(t) + "/m?dialer_retries=1", "sentinels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := redisstore.Open(c.url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err == nil || strings.Contains(err.Error(), why) {
				t.Errorf("error %v; want that of the client, which is not told twice", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			told(t, s.Ping(ctx), context.Canceled, c.word)
			r := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}
			_, err = s.Take(ctx, r)
			told(t, err, redisstore.ErrNotSent, c.word)
			if strings.Contains(c.url, "dialer_retries") {
				return
			}
			ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond) // it dials again after 100ms
			defer cancel()
			_, err = s.Take(ctx, r)
			told(t, err, context.DeadlineExceeded, c.word)
		})
	}
}

const why = "; the last dial failed: "

func told(t *testing.T, err, kind error, word string) {
	t.Helper()
	if !errors.Is(err, kind) || strings.Count(err.Error(), why) != 1 || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v; want %v, and why: %s", err, kind, word)
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		t.Errorf("%v: that of the connection need not be that of the request", err)
	}
}

// Once a connection is made, earlier dial errors are forgotten.
func TestConnectionMade(t *testing.T) {
	s, err := redisstore.Open("redis://" + sharedServer(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.FailDial(errors.New("just now"), time.Now())
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ping(ctx); err == nil || err.Error() != "redisstore: context canceled" {
		t.Errorf("error %v", err)
	}
	s.FailDial(errors.New("long ago"), time.Now().Add(-time.Minute))
	if err := s.Ping(ctx); err == nil || err.Error() != "redisstore: context canceled" {
		t.Errorf("error %v", err)
	}
}
