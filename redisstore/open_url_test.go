package redisstore_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A server that cannot decide gives an error of one line, and no decision.
func TestTrouble(t *testing.T) {
	for _, c := range []struct {
		name string
		url  func(t *testing.T) string
		word string
	}{
		{"not there", func(t *testing.T) string { return "redis://" + unused(t) }, "connection refused"},
		{"no password", func(t *testing.T) string { return "redis://" + redistest.Start(t, "--requirepass", "secret").Addr }, "NOAUTH"},
		{"wrong password", func(t *testing.T) string {
			return "redis://:wrong@" + redistest.Start(t, "--requirepass", "secret").Addr
		}, "WRONGPASS"},
		{"read-only", func(t *testing.T) string {
			return "redis://" + redistest.Start(t, "--replicaof", "127.0.0.1", "1").Addr
		}, "READONLY"},
		{"out of memory", func(t *testing.T) string { return "redis://" + redistest.Start(t, "--maxmemory", "1").Addr }, "OOM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := redisstore.Open(c.url(t) + "?max_retries=-1")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			d, err := s.Take(t.Context(), headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1})
			if err == nil || !strings.Contains(err.Error(), c.word) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q; want one line with %q", err, c.word)
			}
			if d.Allowed() {
				t.Error("allowed although the store did not answer")
			}
		})
	}
}

// unused is an address where nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// If scripts may not call TIME, the caller's clock is used, without a further request once that is
// known.
func TestNoTime(t *testing.T) {
	server := redistest.Start(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = admin.Close() })
	if err := admin.Do(t.Context(), "acl", "setuser", "app", "on", ">pw", "~*", "+@all", "-time").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "app", Password: "pw"})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client)
	r := headgate.Request{Key: "k", Limit: parse(t, "3/h"), Cost: 1}
	for i := range int64(3) {
		if d := take(t, s, r); !d.Allowed() || d.Remaining != 2-i {
			t.Fatalf("take %d: %+v", i, d)
		}
	}
	short := parse(t, "10/s") // lives a minute longer, because clocks of callers differ
	take(t, s, headgate.Request{Key: "short", Limit: short, Cost: 1})
	if left := client.PTTL(t.Context(), s.Name("short", short)).Val(); left < 50*time.Second {
		t.Errorf("lives for %s by the clock of the caller; want a minute", left)
	}
	counter := new(counter)
	client.AddHook(counter)
	if d := take(t, s, r); d.Allowed() || counter.sent.Load() != 1 {
		t.Errorf("a fourth of three, by %d commands: %+v", counter.sent.Load(), d)
	}
}

// The queue of a store can be set in its URL, and is the default otherwise.
func TestOpenQueue(t *testing.T) {
	for url, want := range map[string]int{
		"redis://localhost": redisstore.DefaultQueue, "redis://localhost?queue=0": redisstore.DefaultQueue, "redis://localhost?prefix=a:&queue=7&pool_size=3": 7,
		"redis+cluster://a:1,b:2?queue=100000": 100000, "redis+sentinel://a:1/mymaster?queue=1": 1,
	} {
		s, err := redisstore.Open(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := s.QueueLimit(); got != want {
			t.Errorf("%s: a queue of %d; want %d", url, got, want)
		}
		_ = s.Close()
	}
}

func TestOpen(t *testing.T) {
	for _, url := range []string{
		"redis://localhost", "redis://:pw@localhost:6379/2?dial_timeout=1s", "rediss://localhost:6380", "redis://localhost?prefix=app:",
		"redis+cluster://a:1,b:2,c:3", "rediss+cluster://u:p@a:1", "redis+sentinel://a:1,b:2/mymaster", "redis+sentinel://a:1/mymaster/3",
	} {
		s, err := redisstore.Open(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		_ = s.Close()
	}
	for _, url := range []string{
		"", "localhost:6379", "http://localhost", "redis:", "redis+ring://a", "redis://:hush@localhost:notaport", "redis://:hush@host/notadb",
		"redis://:hush@localhost?no_such_option=1", "redis+sentinel://:hush@a:1", "redis://localhost?prefix={",
		"redis://:p@ss/wordhush@localhost:1", "redis://:123/hush@localhost:1", "redis://localhost?password=hush", "redis://:123?queue=hush@localhost", "redis://user:hush", "redis://localhost?pool_size=%hush", "redis://localhost?queue=5;hush", "redis://:67999/hush@localhost", "redis://:hush?x@localhost", "redis://:123?hush@localhost", "redis://:123?prefix={hush@localhost", "redis://:hush@localhost?queue=-1", "redis+cluster://:hush@a:1?queue=1e3", "redis+sentinel://a:1/m?sentinel_password=hush",
	} {
		_, err := redisstore.Open(url)
		if err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v; want one line without the password", url, err)
		} else {
			t.Log(err)
		}
	}
}

// A store may be closed twice, and sends nothing afterwards.
func TestCloseTwice(t *testing.T) {
	s, err := redisstore.Open("redis://" + unused(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Take(t.Context(), headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}); err == nil || err.Error() != "redisstore: redis: client is closed" {
		t.Errorf("after Close: %v", err)
	}
}
