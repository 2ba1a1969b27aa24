package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// eventually waits until the address has a state in rule login.
func (f *instance) eventually(want string) {
	f.t.Helper()
	eventually.Equal(f.t, "the address", func() string { return f.state("login", ip) }, want)
}

// TestFleet: an action of one instance is in force, listed and undone on another, also on one that
// starts later.
func TestFleet(t *testing.T) {
	server := redistest.Start(t)
	a, b := newInstance(t, open(t, server)), newInstance(t, open(t, server))
	ban := a.do(Order{Kind: Ban, Rule: "login", Key: ip, For: time.Hour, Note: "scan"})
	b.eventually("ban")
	shadow := b.do(Order{Kind: Mode, Rule: "login", Mode: "shadow"})
	b.undo(ban)
	a.eventually("5 of 5, 100 of 100")
	a.undoRefused(ban, "already undone")

	c := newInstance(t, open(t, server)) // as after a restart
	if err := c.table.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if terms, err := c.engine.Terms("login", ip); err != nil || terms.Mode != rules.Shadow {
		t.Errorf("after a restart, the mode is %v, %v", terms.Mode, err)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != shadow.ID || !list[0].Undoable ||
		list[1].ID != ban.ID || list[1].Note != "scan" || list[1].Undone.By != "Bob" {
		t.Errorf("after a restart, the list is %+v, %v", list, err)
	}
	c.undo(shadow)
}

// TestPutBack: what Redis has lost is put back by another instance, which lists that. It is no action
// to undo, and there is nothing to put back after it.
func TestPutBack(t *testing.T) {
	server := redistest.Start(t)
	a, b := newInstance(t, open(t, server)), newInstance(t, open(t, server))
	a.do(Order{Kind: Ban, Rule: "login", Key: ip, For: time.Hour})
	b.eventually("ban")
	if _, err := server.Do(t.Context(), "FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	if err := a.table.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := b.PutBack(t.Context(), "Bob")
	if err != nil || done.Note != "bans: 1, limits of keys: 0, modes: 0" || done.Undoable {
		t.Fatalf("put back: %+v, %v", done, err)
	}
	a.eventually("ban")
	if list, err := a.List(t.Context()); err != nil || len(list) != 1 || list[0].By != "Bob" || list[0].Ended != nil {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if _, err := a.Undo(t.Context(), done.ID, "x"); err == nil || err.Error() != "a restore cannot be undone" {
		t.Errorf("undo: %v", err)
	}
	if _, err := b.PutBack(t.Context(), "Bob"); err == nil || !strings.Contains(err.Error(), "nothing is lost") {
		t.Errorf("again: %v", err)
	}
}

// TestRace: of instances that act and undo at the same time, each action is done once or refused, and
// what is listed as not undone is in force.
func TestRace(t *testing.T) {
	server := redistest.Start(t)
	executors := []*instance{newInstance(t, open(t, server)), newInstance(t, open(t, server))}
	first := executors[0].do(Order{Kind: Ban, Rule: "any", Key: "k"})
	var undone atomic.Int32
	var all sync.WaitGroup
	for _, f := range executors {
		for i := range 4 {
			all.Go(func() {
				if _, err := f.Undo(t.Context(), first.ID, "x"); err == nil {
					undone.Add(1)
				}
				for range 5 {
					l := headgate.PerMinute(int64(20 + i))
					a, err := f.Do(t.Context(), Order{Kind: Raise, Rule: "any", Key: "k", Limits: []headgate.Limit{l}})
					if err == nil && i%2 == 0 {
						_, _ = f.Undo(t.Context(), a.ID, "x")
					}
				}
			})
		}
	}
	all.Wait()
	if n := undone.Load(); n > 1 {
		t.Errorf("one act was undone %d times", n)
	}
	f := executors[0]
	if err := f.table.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	records, err := f.records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := f.table.Stored(records[0].name())
	reached := false
	for _, r := range records {
		reached = reached || r.Undone == nil && r.To == now || r.Undone != nil && r.From == now
	}
	if !reached {
		t.Errorf("no act of the list has put %s", now)
	}
}

// TestListIsBounded: to the newest, and it expires.
func TestListIsBounded(t *testing.T) {
	store := open(t, redistest.Start(t))
	for name, b := range map[string]log{
		"memory": &memoryLog{texts: map[string]string{}}, "redis": newRedisLog(store, nil),
	} {
		for i := range Max + 5 {
			if ok, err := b.swap(t.Context(), fmt.Sprintf("%05d", i), "", "x"); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		if ok, err := b.swap(t.Context(), "00900", "y", "z"); ok || err != nil {
			t.Errorf("%s: another text was replaced: %v, %v", name, ok, err)
		}
		texts, err := b.all(t.Context())
		if err != nil || len(texts) != Max || texts["00004"] != "" || texts["00005"] == "" {
			t.Errorf("%s: %d are kept, %v", name, len(texts), err)
		}
	}
	client, prefix := store.Client(), store.Prefix()
	ttl := client.PTTL(t.Context(), prefix+"{@console}:@acts").Val()
	if ttl > keptFor || ttl < keptFor-time.Minute {
		t.Errorf("the list expires in %v, want %v", ttl, keptFor)
	}
}

// TestStoreFails: an action that could not be carried out is not in force, and the error is no refusal.
func TestStoreFails(t *testing.T) {
	server := redistest.Start(t)
	f := newInstance(t, open(t, server))
	f.use("login", ip, 2)
	server.Stop()
	for _, o := range []Order{
		{Kind: Ban, Rule: "login", Key: ip}, {Kind: Reset, Rule: "login", Key: ip}, {Kind: Mode, Rule: "login", Mode: "shadow"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := f.Do(ctx, o); err == nil || strings.Contains(err.Error(), "try again") {
			t.Errorf("without Redis, %s returned %v", o.Kind, err)
		}
	}
	if terms, _ := f.engine.Terms("login", ip); terms.Banned || terms.Mode != rules.Enforce {
		t.Errorf("without Redis, the terms are %+v", terms)
	}
}

var errDown = errors.New("down")

// failing is a store whose resets fail.
type failing struct{ headgate.Store }

func (failing) Reset(context.Context, string, headgate.Limit) error { return errDown }

// TestResetFails: what was put before the reset is taken back, and nothing is listed.
func TestResetFails(t *testing.T) {
	f := newInstance(t, nil)
	f.o.Store = failing{f.store}
	f.use("login", ip, 2)
	if _, err := f.Do(t.Context(), Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "9/m")}); !errors.Is(err, errDown) {
		t.Errorf("the error is %v", err)
	}
	f.want("login", ip, "3 of 5, 98 of 100")
	if list, err := f.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// TestOtherVersions: what another version has noted does not hide the rest.
func TestOtherVersions(t *testing.T) {
	f := newInstance(t, nil)
	ban := f.do(Order{Kind: Ban, Rule: "login", Key: ip})
	memory, _ := f.log.(*memoryLog)
	memory.texts["x"] = "[]"
	text := strings.Replace(memory.texts[ban.ID], "{", `{"new":1,`, 1)
	memory.texts[ban.ID] = text
	if !json.Valid([]byte(text)) {
		t.Fatal(text)
	}
	f.undo(ban)
	if list, err := f.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// TestLeastRights: these are the commands that the documentation names, and no others.
func TestLeastRights(t *testing.T) {
	server := redistest.Start(t)
	user := []string{"ACL", "SETUSER", "headgate"}
	for file, begin := range map[string]string{
		"redis.md": "ACL SETUSER headgate on ", "serve/http.md": "`+hget ",
	} {
		text, err := os.ReadFile("../../../../docs/" + file)
		_, rest, found := strings.Cut(string(text), begin)
		if err != nil || !found {
			t.Fatalf("docs/%s does not name the commands: %v", file, err)
		}
		line, _, _ := strings.Cut(rest, "\n")
		begin = strings.TrimPrefix(begin, "ACL SETUSER headgate ")
		begin = strings.TrimPrefix(begin, "`")
		line, _, _ = strings.Cut(begin+line, "`")
		user = append(user, strings.Fields(line)...)
	}
	if _, err := server.Do(t.Context(), user...); err != nil {
		t.Fatal(err, user)
	}
	store, err := redisstore.Open("redis://headgate:secret@" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	f := newInstance(t, store)
	f.use("any", "k", 3)
	f.do(Order{Kind: Reset, Rule: "any", Key: "k"})
	f.undo(f.do(Order{Kind: Ban, Rule: "any", Key: "k", For: time.Hour}))
	f.undo(f.do(Order{Kind: Mode, Rule: "any", Mode: "shadow"}))
	for range 10 {
		f.do(Order{Kind: Ban, Rule: "any", Key: "k", For: time.Hour})
	}
	b, _ := f.log.(*redisLog)
	b.most = 5 // so that the oldest are deleted
	f.do(Order{Kind: Lift, Rule: "any", Key: "k"})
	if list, err := f.List(t.Context()); err != nil || len(list) != 5 {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// losing opens a store whose client, with its usual retries, loses an answer to a command with word.
func losing(t *testing.T, server *redistest.Server, word string) *redisstore.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: redistest.LoseAnAnswer(t, server.Addr, word), Protocol: 2, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	store, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestALostAnswer: an action or an undo whose answer is lost is an error, and taken back. The list says
// what is in force.
func TestALostAnswer(t *testing.T) {
	for _, word := range []string{"{@console}:@acts", "login " + ip} { // of the list, of the override
		server := redistest.Start(t)
		a := newInstance(t, open(t, server))
		a.do(Order{Kind: Ban, Rule: "any", Key: "k"}) // the server knows the scripts
		order := Order{Kind: Ban, Rule: "login", Key: ip, By: "Ann"}
		lossy := newInstance(t, losing(t, server, word))
		if done, err := lossy.Do(t.Context(), order); err == nil {
			t.Errorf("%s: the act is %+v without an error", word, done)
		}
		if list, err := a.List(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%s: the list is %+v, %v; want only the act before", word, list, err)
		}
		if got := a.state("login", ip); got != "5 of 5, 100 of 100" {
			t.Errorf("%s: after the act the key has %s", word, got)
		}
		ban := a.do(order)
		if word[0] == '{' {
			word = "bob" // who is written into the list
		}
		lossy = newInstance(t, losing(t, server, word))
		_, err := lossy.Undo(t.Context(), ban.ID, "bob")
		if _, refused := errors.AsType[*Error](err); err == nil || refused {
			t.Errorf("%s: Undo returned %v; want that there was no answer", word, err)
		}
		list, err := a.List(t.Context())
		if err != nil || len(list) != 2 || list[0].Undone != nil || list[0].Ended != nil {
			t.Errorf("%s: the list is %+v, %v; want a ban in force", word, list, err)
		}
		if got := a.state("login", ip); got != "ban" {
			t.Errorf("%s: after the undo the key has %s", word, got)
		}
		a.undo(ban)
	}
}
