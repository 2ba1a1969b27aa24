package redisstore_test

import (
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

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
	if err := admin.Do(t.Context(), "acl", "setuser", "app", "on", ">pw", "~*", "+@all",
		"-time").Err(); err != nil {
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
		"redis://localhost":                               redisstore.DefaultQueue,
		"redis://localhost?queue=0":                       redisstore.DefaultQueue,
		"redis://localhost?prefix=a:&queue=7&pool_size=3": 7,
		"redis+cluster://a:1,b:2?queue=100000":            100000,
		"redis+sentinel://a:1/mymaster?queue=1":           1,
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
	if _, err := s.Take(t.Context(),
		headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1}); err == nil ||
		err.Error() != "redisstore: redis: client is closed" {
		t.Errorf("after Close: %v", err)
	}
}

// Open takes a URL, or rejects it in one line that names what is wrong, and no password.
func TestOpen(t *testing.T) {
	table, err := os.ReadFile("testdata/urls.txt")
	if err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer(
		"redis://[user:password@]host[:port][/db], rediss:// for TLS, "+
			"redis+cluster://host:port,host:port, "+
			"redis+sentinel://host:port,host:port/master-name or redis+proxy://host:port", "{URL}",
		"; in a password write %25 for %, %20 for a space, %2F for /, %23 for #, %3F for ?, "+
			"%26 for &", "{escapes}")
	rows := regexp.MustCompile(`(?m)^"(.*)"\n\t(.*)\n`).FindAllStringSubmatch(string(table), -1)
	if len(rows) < 70 {
		t.Errorf("%d URLs", len(rows))
	}
	for _, row := range rows {
		s, err := redisstore.Open(row[1])
		got := "ok"
		if err == nil {
			_ = s.Close()
		} else if got = short.Replace(err.Error()); !isInvalid(err) ||
			strings.Contains(got, "hush") {
			t.Errorf("%s: %v", row[1], err)
		}
		if got != row[2] {
			t.Errorf("%s:\n got %s\nwant %s", row[1], got, row[2])
		}
	}
}
