package redistest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestClockAhead(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-1500 * time.Millisecond, time.Hour} {
		s := StartAhead(t, ahead)
		before := time.Now().Add(ahead)
		reply, err := s.Do(t.Context(), "TIME")
		after := time.Now().Add(ahead)
		if err != nil {
			t.Fatal(err)
		}
		seconds, micros, _ := strings.Cut(reply, "\n")
		sec, _ := strconv.ParseInt(seconds, 10, 64)
		usec, _ := strconv.ParseInt(micros, 10, 64)
		at := time.Unix(sec, usec*1000)
		if at.Before(before.Truncate(time.Microsecond)) || at.After(after) {
			t.Errorf("%v ahead: it is %v, want from %v to %v", ahead, at, before, after)
		}
	}
}

func TestReplica(t *testing.T) {
	t.Parallel()
	primary := Start(t)
	check(t, primary, "OK", "SET", "k", "v")
	replica := StartReplica(t, primary)
	check(t, replica, "v", "GET", "k")
	_, err := replica.Do(t.Context(), "SET", "k", "w")
	if e, ok := errors.AsType[ReplyError](err); !ok || !strings.HasPrefix(string(e), "READONLY") {
		t.Errorf("SET: %v, want READONLY", err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 1, 0)
	s.Primary.Stop()
	want := strings.Replace(s.Replicas[0].Addr, ":", "\n", 1)
	if err := s.Sentinels[0].awaitReply(t.Context(), []string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelMaster}, want); err != nil {
		t.Fatal(err)
	}
	check(t, s.Replicas[0], "OK", "SET", "k", "v")
}

func TestReplicatedCluster(t *testing.T) {
	t.Parallel()
	c := StartReplicatedCluster(t)
	check(t, c.Servers[2], "OK", "SET", "foo", "bar") // slot 12182
	if err := c.Move(t.Context(), 12182, 2, 0, func() {}); err != nil {
		t.Fatal(err)
	}
	check(t, c.Servers[0], "bar", "GET", "foo")
	c.Servers[1].Stop()
	if err := c.Servers[4].awaitInfo(t.Context(), "replication", "role:master"); err != nil {
		t.Fatal(err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s, config := StartTLS(t)
	check(t, s, "PONG", "PING")
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := ping(t, conn); got != "+PONG\r\n" {
		t.Errorf("PING over TLS: %q", got)
	}
	stranger := config.Clone()
	stranger.Certificates = nil
	conn, err = (&tls.Dialer{Config: stranger}).DialContext(t.Context(), "tcp", s.Addr)
	if err == nil { // TLS 1.3: a client hears of it when it reads
		defer conn.Close()
		if got := ping(t, conn); got != "" {
			t.Errorf("PING without a certificate: %q", got)
		}
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	p := StartProxy(t, Start(t).Addr)
	conn := dial(t, p.Addr)
	if got := ping(t, conn); got != "+PONG\r\n" {
		t.Errorf("PING through a proxy: %q", got)
	}
	p.Delay(50 * time.Millisecond)
	start := time.Now()
	if got := ping(t, conn); got != "+PONG\r\n" || time.Since(start) < 50*time.Millisecond {
		t.Errorf("late PING: %q after %v", got, time.Since(start))
	}
	p.Cut(2)
	cut := ping(t, conn) + ping(t, conn)
	if want := "+PONG\r\n+PO"; cut != want && cut != "+PO" {
		t.Errorf("PING cut: %q, want %q", cut, want)
	}
	p.Swallow()
	conn = dial(t, p.Addr)
	_, _ = io.WriteString(conn, "PING\r\n")
	for p.Failed() < 3 { // it is counted when it vanishes
		time.Sleep(time.Millisecond)
	}
	p.Heal()
	if got := ping(t, conn); got != "" {
		t.Errorf("PING after a lost answer: %q, want the end", got)
	}
	if got := ping(t, dial(t, p.Addr)); got != "+PONG\r\n" {
		t.Errorf("PING through a healed proxy: %q", got)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ping gives what comes as the answer to PING, as far as it comes.
func ping(t *testing.T, conn net.Conn) string {
	t.Helper()
	_, _ = io.WriteString(conn, "PING\r\n")
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return line
}
