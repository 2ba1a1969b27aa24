package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// delayVariable, if set to "address server delay", makes this program a network: a proxy to the
// server that delays every byte, each way.
const delayVariable = "HEADGATE_BENCH_DELAY"

// withDelay calls measure with the same server behind a proxy. The proxy is a process of its own,
// so that its CPU time is not counted as that of the client.
func (s redisServer) withDelay(
	ctx context.Context, delay time.Duration, measure func(redisServer) error,
) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return err
	}
	address := "127.0.0.1:" + ports[0]
	settings := fmt.Sprintf("%s=%s %s %s", delayVariable, address, s.Addr, delay)
	proxy, err := start(ctx, self, []string{settings}, address, "")
	if err != nil {
		return err
	}
	far := *s.Server
	far.Addr = address
	return errors.Join(measure(redisServer{&far, s.admin}), proxy.stop())
}

// serveDelay is a proxy with the settings of delayVariable. It ends with ctx.
func serveDelay(ctx context.Context, settings string) error {
	words := strings.Fields(settings)
	if len(words) != 3 {
		return fmt.Errorf("%s is %q; want an address, a server and a delay",
			delayVariable, settings)
	}
	delay, err := time.ParseDuration(words[2])
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", words[0])
	if err != nil {
		return err
	}
	return newDelayer(words[1], delay).serve(ctx, l)
}

// delayer passes connections on to a server, each piece of bytes after the same delay. It reads
// at once, so the delay does not limit what is under way.
type delayer struct {
	server string
	delay  time.Duration

	// In the order of due times. One thread delivers for all connections: a thread for each wakes
	// later the more there are, which makes clients with more connections look slower.
	pieces chan piece
}

// piece is what was read at once from one end of a connection.
type piece struct {
	due   time.Time
	to    net.Conn // the other end
	bytes []byte   // nil: the first end was closed
}

func newDelayer(server string, delay time.Duration) *delayer {
	return &delayer{server, delay, make(chan piece, 1<<16)}
}

// serve accepts connections until ctx ends.
func (d *delayer) serve(ctx context.Context, l net.Listener) error {
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go d.deliver()
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		server, err := new(net.Dialer).DialContext(ctx, "tcp", d.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		go d.read(client, server)
		go d.read(server, client)
	}
}

func (d *delayer) read(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		due := time.Now().Add(d.delay)
		if n > 0 {
			d.pieces <- piece{due, to, bytes.Clone(buffer[:n])}
		}
		if err != nil {
			d.pieces <- piece{due, to, nil}
			return
		}
	}
}

func (d *delayer) deliver() {
	ownThread()
	for p := range d.pieces {
		sleepUntil(p.due)
		if p.bytes == nil {
			_ = p.to.Close()
		} else {
			_, _ = p.to.Write(p.bytes) // after an error, the reader of that end closes both
		}
	}
}
