package overrides

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/seal"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

func open(t *testing.T, url string) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(url + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// running runs a table until the test ends.
func running(t testing.TB, table *Table) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { table.Run(ctx, nil) })
	t.Cleanup(func() { cancel(); ended.Wait() })
}

// instance is a table of its own, as each process has one.
func instance(t *testing.T, store *redisstore.Store, report func(error)) *Table {
	t.Helper()
	table := NewRedis(store, nil, report)
	running(t, table)
	if err := table.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table
}

const address = "ip:192.0.2.7"

// awaitOverride waits until address has want in table.
func awaitOverride(t *testing.T, table *Table, want string) {
	t.Helper()
	eventually.Equal(t, address, func() string { return found(table, address) }, want)
}

func TestRedis(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr
	a, b := instance(t, open(t, url), nil), instance(t, open(t, url), nil)

	ban := rules.Override{Rule: "login", Key: "ip:192.0.2.*", Ban: true, Note: "scan", By: "ops"}
	put(t, a, ban)
	if got := found(a, address); got != "ban" {
		t.Fatalf("where it was put, it has %s", got)
	}
	awaitOverride(t, b, "ban")
	put(t, b, rules.Override{
		Rule: "login", Key: address, Limits: []headgate.Limit{limit(t, "9/m burst 12")},
	})
	awaitOverride(t, a, "login=9/m burst 12")

	// A process that starts later reads them before it serves.
	c := instance(t, open(t, url), nil)
	if _, list := c.List(); len(list) != 2 || list[1].Note != "scan" || list[1].By != "ops" {
		t.Fatalf("a new instance reads %+v", list)
	}
	if had, err := c.Delete(t.Context(), "login", address); !had || err != nil {
		t.Fatalf("Delete = %v, %v", had, err)
	}
	awaitOverride(t, b, "ban")
	if had, err := c.Delete(t.Context(), "login", "ip:192.0.2.*"); !had || err != nil {
		t.Fatalf("Delete = %v, %v", had, err)
	}
	awaitOverride(t, a, "nothing")

	client := open(t, url).Client()
	for _, key := range client.Keys(t.Context(), "*").Val() {
		if client.TTL(t.Context(), key).Val() <= 0 || strings.HasSuffix(key, "hash") {
			t.Errorf("%s remains in Redis", key)
		}
	}
}

// TestRedisExpiry: all keys expire with the last override, or after 30 days, unless one is without
// end.
func TestRedisExpiry(t *testing.T) {
	store := open(t, "redis://"+redistest.Start(t).Addr)
	client, prefix := store.Client(), store.Prefix()
	table := instance(t, store, nil)
	left := func(want time.Duration) {
		t.Helper()
		for _, name := range []string{"hash", "version", "changes"} {
			got := client.PTTL(t.Context(), prefix+"{@overrides}:@"+name).Val()
			if name != "hash" && want > 0 {
				want = max(want, 30*24*time.Hour)
			}
			if got > want || got < want-time.Minute {
				t.Errorf("the %s expires in %v, want %v", name, got, want)
			}
		}
	}
	until := func(key string, d time.Duration) rules.Override {
		return rules.Override{Rule: "login", Key: key, Ban: true, Until: time.Now().Add(d)}
	}
	short := change{field: KeyName("login", "short"), value: "x", ttl: time.Nanosecond}
	if _, err := table.keeper.change(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	if got := client.PTTL(t.Context(), prefix+"{@overrides}:@hash").Val(); got == -1 {
		t.Error("a nanosecond is without end")
	}
	client.FlushAll(t.Context())
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
	client, prefix := store.Client(), store.Prefix()
	reports := make(chan error, 10)
	table := instance(t, store, func(err error) { reports <- err })
	table.max = 3
	put(t, table, rules.Override{Rule: "login", Key: "a", Ban: true})
	bad := map[string]string{"login b": "{", "login c": `{"rule":"login","limits":["0/s"]}`}
	if err := client.HSet(t.Context(), prefix+"{@overrides}:@hash", bad).Err(); err != nil {
		t.Fatal(err)
	}
	// A version that no change has written: all is read.
	if err := client.Set(t.Context(), prefix+"{@overrides}:@version", "X", 0).Err(); err != nil {
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
	case <-time.After(time.Minute):
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

// noReads fails all pipelines, by which a table reads, and nothing else.
type noReads struct{ redis.Hook }

func (noReads) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			cmd.SetErr(errNoReads)
		}
		return errNoReads
	}
}

func (noReads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (noReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

var errNoReads = errors.New("no reads")

// TestPutThatCannotBeRead: what is kept is kept. An error would say that it is not, and the note of
// an act would be taken back.
func TestPutThatCannotBeRead(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr
	store := open(t, url)
	a, b := instance(t, store, nil), instance(t, open(t, url), nil)
	client := store.Client()
	client.AddHook(noReads{})
	put(t, a, rules.Override{Rule: "login", Key: "ip:192.0.2.*", Ban: true})
	awaitOverride(t, b, "ban")
}

// TestNews: an instance reads what has changed, or all if it has missed more than is listed, and if
// it cannot know what it has missed.
func TestNews(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr
	store := open(t, url)
	client, prefix := store.Client(), store.Prefix()
	a := instance(t, store, nil)
	reader := newTable(&redisKeeper{client: client, keys: a.keeper.(*redisKeeper).keys}) // does not poll
	check := func(want ...string) {
		t.Helper()
		if err := reader.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, key := range want {
			if found(reader, key) != "ban" {
				t.Errorf("%s has %s, want a ban", key, found(reader, key))
			}
		}
		if _, list := reader.List(); len(list) != len(want) {
			t.Errorf("it has %d overrides, want %d", len(list), len(want))
		}
	}
	ban := func(key string) rules.Override { return rules.Override{Rule: "login", Key: key, Ban: true} }
	old := ban("old")
	old.Until = time.Now().Add(-time.Hour)
	expired := change{field: KeyName("login", "old"), from: anyValue, value: encode(old)}
	if _, err := a.keeper.change(t.Context(), expired); err != nil {
		t.Fatal(err)
	}
	put(t, a, ban("1"))
	put(t, a, ban("2"))
	check("1", "2")
	put(t, a, ban("3"))
	if _, err := a.Delete(t.Context(), "login", "2"); err != nil {
		t.Fatal(err)
	}
	check("1", "3")
	a.loaded.swept = time.Time{} // so that it looks for what has expired
	put(t, a, ban("4"))
	check("1", "3", "4")
	if n := len(reader.loaded.fields); n != 3 {
		t.Errorf("it keeps %d entries, want 3 without the one that expired", n)
	}
	if _, err := a.Delete(t.Context(), "login", "1"); err != nil {
		t.Fatal(err)
	}
	for range 501 { // 1,003 changes, of which the first is not listed any more
		put(t, a, ban("5"))
		put(t, a, ban("6"))
	}
	if n := client.LLen(t.Context(), prefix+"{@overrides}:@changes").Val(); n != 1000 {
		t.Errorf("%d names are listed, want 1000", n)
	}
	check("3", "4", "5", "6")
	client.HDel(t.Context(), prefix+"{@overrides}:@hash", KeyName("login", "3"))
	client.Set(t.Context(), prefix+"{@overrides}:@version", "ABC", 0)
	check("4", "5", "6")
	client.Del(t.Context(), prefix+"{@overrides}:@version")
	check("4", "5", "6")
	late := newTable(&redisKeeper{client: client, keys: a.keeper.(*redisKeeper).keys})
	if err := late.Refresh(t.Context()); err != nil || found(late, "4") != "ban" {
		t.Errorf("without a version, a new instance has %s, %v; want a ban", found(late, "4"), err)
	}
	for _, key := range []string{"4", "5", "6"} {
		if _, err := a.Delete(t.Context(), "login", key); err != nil {
			t.Fatal(err)
		}
	}
	check()
	put(t, a, ban("7"))
	check("7")
}

// TestNewsAfterAFailover: a replica that takes over may not have the last changes. An instance that
// has read these reads all, also if as many others were made since.
func TestNewsAfterAFailover(t *testing.T) {
	for _, more := range []int{0, 1, 2} {
		store := open(t, "redis://"+redistest.Start(t).Addr)
		client := store.Client()
		a := instance(t, store, nil)
		keys := a.keeper.(*redisKeeper).keys
		ban := func(key string) rules.Override { return rules.Override{Rule: "login", Key: key, Ban: true} }
		put(t, a, ban("base"))
		dumps := map[string]string{}
		for _, key := range keys {
			dumps[key] = client.Dump(t.Context(), key).Val()
		}
		reader := newTable(&redisKeeper{client: client, keys: keys}) // does not poll
		put(t, a, ban("lost"))
		if err := reader.Refresh(t.Context()); err != nil || found(reader, "lost") != "ban" {
			t.Fatal(found(reader, "lost"), err)
		}
		for key, dump := range dumps {
			if err := client.RestoreReplace(t.Context(), key, 0, dump).Err(); err != nil {
				t.Fatal(err)
			}
		}
		put(t, newTable(&redisKeeper{client: client, keys: keys}), ban("new"))
		for i := range more {
			put(t, newTable(&redisKeeper{client: client, keys: keys}), ban(fmt.Sprint(i)))
		}
		if err := reader.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found(reader, "lost") != "nothing" || found(reader, "new") != "ban" {
			t.Errorf("%d more: lost has %s, new has %s", more, found(reader, "lost"), found(reader, "new"))
		}
	}
}

// TestExpiredThatWasReplaced: an instance that has not read the new value does not delete it.
func TestExpiredThatWasReplaced(t *testing.T) {
	server := redistest.Start(t)
	for name, table := range map[string]*Table{
		"memory": NewMemory(), "redis": instance(t, open(t, "redis://"+server.Addr), nil),
	} {
		put(t, table, rules.Override{Rule: "login", Key: "k", Ban: true})
		c := change{field: ModeName("login"), value: shadowOf("login", 0)}
		c.expired = []string{KeyName("login", "k"), "the value before"}
		if got, err := table.keeper.change(t.Context(), c); got != changed || err != nil {
			t.Fatal(got, err)
		}
		if err := table.Refresh(t.Context()); err != nil || found(table, "k") != "ban" {
			t.Errorf("%s: k has %s, %v; want the ban", name, found(table, "k"), err)
		}
	}
}

// An instance reports what a Redis that lost its data has lost, once. It reports nothing that has
// ended, and no deletion: of the last entry, of many, or while it was cut off.
func TestLostEntries(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := open(t, "redis://"+server.Addr)
	var reported []string
	reader := NewRedis(store, nil, func(err error) { reported = append(reported, err.Error()) })
	operator := NewRedis(store, nil, nil)
	read := func() {
		t.Helper()
		if err := reader.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	flush := func() {
		t.Helper()
		if _, err := server.Do(t.Context(), "FLUSHALL"); err != nil {
			t.Fatal(err)
		}
	}
	ban := rules.Override{Rule: "login", Key: "k", Ban: true}
	put(t, operator, ban)
	read()
	if _, err := operator.Delete(t.Context(), "login", "k"); err != nil {
		t.Fatal(err)
	}
	age := func(d time.Duration) {
		t.Helper()
		for _, key := range []string{"hg:{@overrides}:@version", "hg:{@overrides}:@changes"} {
			left := store.Client().PTTL(t.Context(), key).Val()
			if err := store.Client().PExpire(t.Context(), key, left-d).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	age(29 * 24 * time.Hour)
	read() // it was the last one
	put(t, operator, ban)
	read()
	if _, err := operator.Delete(t.Context(), "login", "k"); err != nil {
		t.Fatal(err)
	}
	soon := rules.Override{Rule: "login", Key: "soon", Ban: true, Until: time.Now().Add(time.Minute)}
	put(t, operator, soon)
	age(29 * 24 * time.Hour)
	read() // it ended sooner than the instance comes back
	for range 600 {
		put(t, operator, ban)
		if _, err := operator.Delete(t.Context(), "login", "k"); err != nil {
			t.Fatal(err)
		}
	}
	put(t, operator, rules.Override{Rule: "login", Key: "soon", Ban: true, Until: time.Now().Add(time.Second)})
	read() // all, because it has missed 1,201 changes
	flush()
	read() // only what ends soon
	if len(reported) > 0 {
		t.Errorf("nothing was lost: %q", reported)
	}
	for i, again := range []bool{false, true} { // whether it is changed before it is read
		put(t, operator, ban)
		put(t, operator, rules.Override{Rule: "login", Key: "raised", Limits: []headgate.Limit{limit(t, "9/m")}})
		if err := operator.Swap(t.Context(), ModeName("login"), "", shadowOf("login", time.Hour)); err != nil {
			t.Fatal(err)
		}
		read()
		if got := fmt.Sprint(reader.Count()); got != "map[ban:1 limits:1 mode:1]" {
			t.Errorf("in force: %s", got)
		}
		flush()
		lost := "the store has lost what was in force: 1 limits of keys, 1 bans, 1 modes of rules"
		if again {
			put(t, operator, ban)
			lost = strings.Replace(lost, "1 bans", "0 bans", 1)
		}
		read()
		read()
		if len(reported) != i+1 || reported[i] != lost {
			t.Errorf("reported %q", reported)
		}
		if n := reader.Count(); n["mode"]+n["limits"] != 0 {
			t.Errorf("in force: %+v", n)
		}
		if err := operator.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What one instance has seen the store lose, another one puts back: with its end, note and author,
// but not over what was put meanwhile, and not what has ended. Keys stay sealed.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for _, box := range []*seal.Box{nil, seal.New("0123456789abcdef")} {
		testPutBack(t, box)
	}
}

func testPutBack(t *testing.T, box *seal.Box) {
	t.Helper()
	server := redistest.Start(t)
	store := open(t, "redis://"+server.Addr)
	refresh := func(tables ...*Table) {
		for _, table := range tables {
			if err := table.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if box != nil {
		if err := store.HashKeys([]byte("0123456789abcdef")); err != nil {
			t.Fatal(err)
		}
	}
	losers := []*Table{NewRedis(store, box, nil), NewRedis(store, box, nil)}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	ban := rules.Override{Rule: "login", Key: "ip:192.0.2.1", Ban: true, Until: until, Note: "scan", By: "Ann"}
	put(t, losers[0], ban)
	put(t, losers[0], rules.Override{Rule: "login", Key: "raised", Limits: []headgate.Limit{limit(t, "9/m")}})
	put(t, losers[0], rules.Override{Rule: "login", Key: "other", Ban: true})
	if err := losers[0].Swap(t.Context(), ModeName("login"), "", shadowOf("login", time.Hour)); err != nil {
		t.Fatal(err)
	}
	refresh(losers...)
	if _, err := server.Do(t.Context(), "FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	refresh(losers...)
	late := NewRedis(store, box, nil) // it started after the loss
	put(t, late, rules.Override{Rule: "login", Key: "other", Limits: []headgate.Limit{limit(t, "8/m")}})
	lost, err := late.Lost(t.Context())
	if got := fmt.Sprint(lost.Count()); err != nil || got != "map[ban:1 limits:1 mode:1]" {
		t.Fatalf("lost are %s, %v", got, err)
	}
	if all, err := server.Do(t.Context(), "HGETALL", "hg:{@overrides}:@"+box.Mark()+"lost"); err != nil ||
		strings.Contains(all, "192.0.2.1") != (box == nil) {
		t.Errorf("in Redis: %q, %v", all, err)
	}
	if done, err := late.PutBack(t.Context()); err != nil || len(done.Values) != 3 {
		t.Errorf("put back: %v, %v", done, err)
	}
	refresh(losers[1])
	if got, _ := losers[1].Find("login", ban.Key); fmt.Sprint(got) != fmt.Sprint(ban) {
		t.Errorf("the ban is %+v", got)
	}
	if got := found(losers[1], "other"); got != "login=8/m" || len(losers[1].Modes()) != 1 {
		t.Errorf("the other key has %s; modes %v", got, losers[1].Modes())
	}
	if lost, err := losers[0].Lost(t.Context()); err != nil || len(lost.Values) != 0 {
		t.Errorf("still lost: %v, %v", lost, err)
	}
}

// What was put again and then deleted stays deleted, and what an operator deletes after the loss is
// not put back either.
func TestPutBackNothingDeleted(t *testing.T) {
	t.Parallel()
	for _, box := range []*seal.Box{nil, seal.New("0123456789abcdef")} {
		server := redistest.Start(t)
		store := open(t, "redis://"+server.Addr)
		if box != nil {
			if err := store.HashKeys([]byte("0123456789abcdef")); err != nil {
				t.Fatal(err)
			}
		}
		table := NewRedis(store, box, nil)
		again := rules.Override{Rule: "login", Key: "again", Ban: true}
		put(t, table, again)
		put(t, table, rules.Override{Rule: "login", Key: "deleted", Ban: true})
		put(t, table, rules.Override{Rule: "login", Key: "kept", Ban: true})
		if _, err := server.Do(t.Context(), "FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		if err := table.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(t, table, again)
		for _, key := range []string{"again", "deleted"} {
			if _, err := table.Delete(t.Context(), "login", key); err != nil {
				t.Fatal(err)
			}
		}
		if done, err := table.PutBack(t.Context()); err != nil || len(done.Values) != 1 {
			t.Errorf("put back: %v, %v", done, err)
		}
		if got := found(table, "again") + found(table, "deleted"); got != "nothingnothing" {
			t.Errorf("a deleted ban is in force: %s", got)
		}
	}
}

// Entries that have ended leave the store though one is without end and nobody changes anything.
func TestEndedEntriesLeaveTheStore(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]*Table{
		"memory": NewMemory(), "redis": NewRedis(open(t, "redis://"+redistest.Start(t).Addr), nil, nil),
	} {
		put(t, table, rules.Override{Rule: "login", Key: "k", Ban: true})
		for i := range 509 {
			o := rules.Override{Rule: "login", Key: fmt.Sprint(i), Ban: true, Until: time.Now().Add(-time.Hour)}
			c := change{field: KeyName(o.Rule, o.Key), from: anyValue, value: encode(o)}
			if _, err := table.keeper.change(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		table.loaded.swept = time.Time{} // so that it looks for what has ended
		running(t, table)
		eventually.Equal(t, name, func() int {
			table.loaded.mu.Lock()
			defer table.loaded.mu.Unlock()
			return len(table.loaded.fields)
		}, 1)
	}
}
