package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestChargedOnce loses the answer of every call on its way back. The client has
// its usual retries; the caller gets an error; the server has charged each once.
func TestChargedOnce(t *testing.T) {
	server := redistest.Start(t)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = direct.Close() })
	lossy := redis.NewClient(&redis.Options{Addr: loseAnswers(t, server.Addr, "EVALSHA", "evalsha"), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = lossy.Close() })

	r := headgate.Request{Key: "k", Limit: parse(t, "1000/h fixed-window"), Cost: 1}
	straight := newStore(t, direct)
	take(t, straight, r)
	for range 20 {
		if _, err := newStore(t, lossy).Take(t.Context(), r); err == nil {
			t.Fatal("a lost answer gave no error")
		}
	}
	r.Cost = 0
	if d := take(t, straight, r); d.Remaining != 1000-1-20 {
		t.Errorf("20 calls whose answers were lost left %d of 1000 after one more; want 979", d.Remaining)
	}
}

// loseAnswers is a proxy to addr that closes a connection instead of passing on
// the answer to a command in which one of words stands.
func loseAnswers(t *testing.T, addr string, words ...string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { pass(t.Context(), client, addr, words) })
		}
	})
	return listener.Addr().String()
}

func pass(ctx context.Context, client net.Conn, addr string, words []string) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	request, answer := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, err := client.Read(request)
		if err != nil {
			return
		}
		if _, err := server.Write(request[:n]); err != nil {
			return
		}
		m, err := server.Read(answer) // it has run by now
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		if containsAny(request[:n], words) {
			return
		}
		if _, err := client.Write(answer[:m]); err != nil {
			return
		}
	}
}

func containsAny(b []byte, words []string) bool {
	for _, word := range words {
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}
