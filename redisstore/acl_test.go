package redisstore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// The user of docs/redis.md has all rights that the suites need.
func TestLeastRights(t *testing.T) {
	server := redistest.Start(t)
	if _, err := server.Do(t.Context(), documentedUser(t)...); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "headgate",
		Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	open := func(t *testing.T) *redisstore.Store {
		t.Helper()
		s, err := redisstore.New(client, redisstore.Options{Prefix: "hg:" + t.Name() + ":"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// all commands of all scripts; there is no need of the rest of the suite
	limittest.Vectors(t, open(t))
	for range 20 { // by the server's clock, which may leave the expiry
		take(t, open(t), headgate.Request{Key: "k", Limit: parse(t, "1000/m"), Cost: 1})
	}
	limittest.RunPermits(t, func(t *testing.T) concurrency.Store { return open(t) })
	if err := open(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	log, err := server.Do(t.Context(), "ACL", "LOG")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log, "hg:") || strings.Contains(log, "evalsha") {
		t.Errorf("refused:\n%s", log)
	}

	stranger, err := redisstore.New(client, redisstore.Options{Prefix: "other:"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stranger.Take(t.Context(), headgate.Request{Key: "k", Limit: parse(t, "1/s"), Cost: 1})
	if err == nil || !strings.Contains(err.Error(), "NOPERM") ||
		!strings.Contains(err.Error(), `on keys that begin with "other:"`) {
		t.Errorf("another prefix: %v, want NOPERM, and the prefix", err)
	}

	url := "redis://headgate:secret@" + server.Addr + "/1"
	elsewhere, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	if err := elsewhere.Ping(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "'select'") ||
		!strings.Contains(err.Error(), "SELECT if the database is not 0") {
		t.Errorf("another database: %v, want NOPERM, and SELECT", err)
	}
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "headgate", "+select"); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.Ping(t.Context()); err != nil {
		t.Errorf("another database, with +select: %v", err)
	}
}

// documentedUser is the command of docs/redis.md that makes the user.
func documentedUser(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "ACL SETUSER headgate ") {
			return strings.Fields(line)
		}
	}
	t.Fatal("docs/redis.md names no user")
	return nil
}
