package redistest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// LoseAnswers starts a proxy to the server at addr and returns its address. The proxy lets the
// server run a command that contains one of words, and then closes the connection instead of
// passing on the answer. It ends with the test.
func LoseAnswers(tb testing.TB, addr string, words ...string) string {
	tb.Helper()
	return lose(tb, addr, words, func() bool { return true })
}

// LoseAnAnswer does what LoseAnswers does, for the first such command only.
func LoseAnAnswer(tb testing.TB, addr string, words ...string) string {
	tb.Helper()
	var lost atomic.Bool
	return lose(tb, addr, words, func() bool { return lost.CompareAndSwap(false, true) })
}

// lose drops the answer to a command that contains one of words, if loses returns true.
func lose(tb testing.TB, addr string, words []string, loses func() bool) string {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp",
		net.JoinHostPort(loopback, "0"))
	if err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	tb.Cleanup(func() { _ = listener.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { pass(tb.Context(), client, addr, words, loses) })
		}
	})
	return listener.Addr().String()
}

func pass(
	ctx context.Context, client net.Conn, addr string, words []string, loses func() bool,
) {
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
		if containsAny(request[:n], words) && loses() {
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
