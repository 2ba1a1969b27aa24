package grpcserver

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials/insecure"
)

// A connection is closed if one of its requests takes too long to arrive. Whole requests have no
// bound: a client may watch the health of the server for days.
func TestTimeOfIncompleteRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, ended := watchedPipe(t, time.Minute)
		send(1, true)
		time.Sleep(24 * time.Hour)
		send(3, false)
		var start time.Time
		for stream := uint32(5); stream < 20; stream += 2 { // there is always an incomplete one
			time.Sleep(35 * time.Second)
			start = time.Now()
			send(stream, false)
			time.Sleep(10 * time.Second)
			send(stream-2, true)
		}
		for stream := uint32(21); stream < 30; stream += 2 { // stream 19 is too late
			time.Sleep(9 * time.Second)
			send(stream, false)
			send(stream, true)
		}
		<-ended
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the connection was closed after %v; want a minute", got)
		}
	})
}

// watchedPipe returns a function that begins a request, or sends it whole, and a channel that is
// closed with the connection.
func watchedPipe(t *testing.T, timeout time.Duration) (send func(uint32, bool), ended chan struct{}) {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	w, _, err := watching{
		insecure.NewCredentials(), timeout, func() int { return 1 }, new(atomic.Int64),
		func(_ net.Addr, m mistake, _ error) {
			if m != "" {
				t.Error(m)
			}
		},
	}.ServerHandshake(server)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, w)
	}()
	if _, err := io.WriteString(client, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	return func(stream uint32, whole bool) {
		t.Helper()
		var b bytes.Buffer
		framer := http2.NewFramer(&b, nil)
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte("x")})
		if whole {
			_ = framer.WriteData(stream, true, []byte("message"))
		}
		if _, err := client.Write(b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}, ended
}
