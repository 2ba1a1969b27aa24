package overrides

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/headgate/headgate/service/internal/rules"
	"github.com/redis/go-redis/v9"
)

func open(t *testing.T, url string) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// instance is a table of its own, as each process has one.
func instance(t *testing.T, store *redisstore.Store, report func(error)) *Table {
	t.Helper()
	table := NewRedis(store, report)
	t.Cleanup(func() { table.Close() })
	if err := table.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table
}

const address = "ip:192.0.2.7"

// eventually waits until address has want in table: within a second, and what a busy machine adds.
func eventually(t *testing.T, table *Table, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got = found(table, address); got == want {
			return
		}
	}
	t.Fatalf("after 3 seconds, it has %s, want %s", got, want)
}

func TestRedis(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr
	a, b := instance(t, open(t, url), nil), instance(t, open(t, url), nil)

	ban := rules.Override{Rule: "login", Key: "ip:192.0.2.*", Ban: true, Note: "scan", By: "ops"}
	put(t, a, ban)
	if got := found(a, address); got != "ban" {
		t.Fatalf("where it was put, it has %s", got)
	}
	eventually(t, b, "ban")
	put(t, b, rules.Override{
		Rule: "login", Key: address, Limits: []headgate.Limit{limit(t, "9/m burst 12")},
	})
	eventually(t, a, "login=9/m burst 12")

	// A process that starts later reads them before it serves.
	c := instance(t, open(t, url), nil)
	if _, list := c.List(); len(list) != 2 || list[1].Note != "scan" || list[1].By != "ops" {
		t.Fatalf("a new instance reads %+v", list)
	}
	if had, err := c.Delete(t.Context(), "login", address); !had || err != nil {
		t.Fatalf("Delete = %v, %v", had, err)
	}
	eventually(t, b, "ban")
	if had, err := c.Delete(t.Context(), "login", "ip:192.0.2.*"); !had || err != nil {
		t.Fatalf("Delete = %v, %v", had, err)
	}
	eventually(t, a, "nothing")

	client, _ := open(t, url).Client()
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys remain in Redis: %v", n, client.Keys(t.Context(), "*").Val())
	}
}

// TestRedisExpiry: both keys expire with the last override, unless one is without end.
func TestRedisExpiry(t *testing.T) {
	store := open(t, "redis://"+redistest.Start(t).Addr)
	client, prefix := store.Client()
	table := instance(t, store, nil)
	left := func(want time.Duration) {
		t.Helper()
		for _, name := range []string{"hash", "version"} {
			got := client.PTTL(t.Context(), prefix+"{@overrides}:@"+name).Val()
			if got > want || got < want-time.Minute {
				t.Errorf("the %s expires in %v, want %v", name, got, want)
			}
		}
	}
	until := func(key string, d time.Duration) rules.Override {
		return rules.Override{Rule: "login", Key: key, Ban: true, Until: time.Now().Add(d)}
	}
	put(t, table, until("a", time.Hour))
	left(time.Hour + time.Millisecond)
	put(t, table, until("b", 2*time.Hour))
	put(t, table, until("c", time.Minute))
	left(2*time.Hour + time.Millisecond)
	put(t, table, rules.Override{Rule: "login", Key: "d", Ban: true})
	put(t, table, until("e", time.Hour))
	left(-1)
}

func TestRedisBoundAndBadEntries(t *testing.T) {
	store := open(t, "redis://"+redistest.Start(t).Addr)
	client, prefix := store.Client()
	reports := make(chan error, 10)
	table := instance(t, store, func(err error) { reports <- err })
	table.max = 3
	put(t, table, rules.Override{Rule: "login", Key: "a", Ban: true})
	bad := map[string]string{"login b": "{", "login c": `{"rule":"login","limits":["0/s"]}`}
	if err := client.HSet(t.Context(), prefix+"{@overrides}:@hash", bad).Err(); err != nil {
		t.Fatal(err)
	}
	err := table.Put(t.Context(), rules.Override{Rule: "login", Key: "d", Ban: true})
	if _, ok := errors.AsType[*headgate.InvalidError](err); !ok {
		t.Fatalf("the fourth override returned %v", err)
	}
	put(t, table, rules.Override{Rule: "login", Key: "a", Limits: []headgate.Limit{limit(t, "5/m")}})
	if got := found(table, "a"); got != "login=5/m" {
		t.Errorf("beside bad entries, a has %s", got)
	}
	for range bad {
		if err := <-reports; !strings.Contains(err.Error(), `entry "login `) {
			t.Errorf("reported %v", err)
		}
	}
}

// TestRedisFails: overrides stay in force while Redis is away, and one failure is reported.
func TestRedisFails(t *testing.T) {
	server := redistest.Start(t)
	reports := make(chan error, 10)
	table := instance(t, open(t, "redis://"+server.Addr), func(err error) { reports <- err })
	put(t, table, rules.Override{Rule: "login", Key: "k", Ban: true})
	server.Stop()
	select {
	case err := <-reports:
		if !strings.Contains(err.Error(), "overrides: read") {
			t.Errorf("reported %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("no failure was reported")
	}
	if got := found(table, "k"); got != "ban" {
		t.Errorf("without Redis, k has %s", got)
	}
}

// TestRedisCluster: the script finds both keys on one server of a Cluster.
func TestRedisCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	table := instance(t, open(t, "redis+cluster://"+strings.Join(cluster.Addrs, ",")), nil)
	put(t, table, rules.Override{Rule: "login", Key: address, Ban: true})
	if got := found(table, address); got != "ban" {
		t.Errorf("it has %s", got)
	}
}

// TestRedisACL: these are the commands that the documentation names, and no others.
func TestRedisACL(t *testing.T) {
	server := redistest.Start(t)
	setUser := []string{"ACL", "SETUSER", "headgate", "on", ">secret", "resetchannels", "~hg:*"}
	const more = "+hget +hgetall +hset +hdel +hexists +hlen +persist"
	commands := "+evalsha +eval +get +exists +set +del +pexpire +pttl " + more
	text, err := os.ReadFile("../../../docs/serve/http.md")
	if err != nil || !strings.Contains(string(text), more) {
		t.Errorf("docs/serve/http.md does not name %s: %v", more, err)
	}
	setUser = append(setUser, strings.Fields(commands)...)
	if _, err := server.Do(t.Context(), setUser...); err != nil {
		t.Fatal(err)
	}
	table := instance(t, open(t, "redis://headgate:secret@"+server.Addr), nil)
	until := time.Now().Add(time.Hour)
	put(t, table, rules.Override{Rule: "login", Key: address, Ban: true, Until: until})
	put(t, table, rules.Override{Rule: "login", Key: address, Ban: true})
	if had, err := table.Delete(t.Context(), "login", address); !had || err != nil {
		t.Errorf("Delete = %v, %v", had, err)
	}
}

// noReads fails all GETs, and nothing else.
type noReads struct{ redis.Hook }

func (noReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "get" {
			cmd.SetErr(errNoReads)
			return errNoReads
		}
		return next(ctx, cmd)
	}
}

func (noReads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (noReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

var errNoReads = errors.New("no reads")

// TestPutThatCannotBeRead: what is kept is kept. An error would say that it is not, and the note of
// an act would be taken back.
func TestPutThatCannotBeRead(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr
	store := open(t, url)
	a, b := instance(t, store, nil), instance(t, open(t, url), nil)
	client, _ := store.Client()
	client.AddHook(noReads{})
	put(t, a, rules.Override{Rule: "login", Key: "ip:192.0.2.*", Ban: true})
	eventually(t, b, "ban")
}
