package redisstore_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// A value of another type is never written over or deleted, and no request of a group with one on
// it is charged. A request that would write nothing takes it for the initial state.
func TestWrongType(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	limit, sibling := parse(t, "5/h"), parse(t, "a=5/h")
	for kind, value := range map[string]func(name string){
		"set":  func(name string) { client.SAdd(t.Context(), name, "member") },
		"word": func(name string) { client.Set(t.Context(), name, "a word", 0) },
		"none": func(name string) { client.Set(t.Context(), name, "", 0) },
	} {
		value(s.Name(kind, limit))
		for _, cost := range []int64{-1, 0, 1, 9} {
			rs := []headgate.Request{{Key: kind, Limit: sibling, Cost: 1},
				{Key: kind, Limit: limit, Cost: cost}}
			for _, rs := range [][]headgate.Request{rs[1:], rs} {
				err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, len(rs)))
				if err == nil && kind == "set" && len(rs) == 1 && (cost == 0 || cost > 5) {
					continue
				}
				if err == nil || !strings.HasPrefix(err.Error(), "redisstore: BADSTATE ") &&
					!strings.HasPrefix(err.Error(), "redisstore: WRONGTYPE ") {
					t.Errorf("%s, cost %d of %d: %v", kind, cost, len(rs), err)
				}
			}
		}
		if d := take(t, s, headgate.Request{Key: kind, Limit: sibling}); d.Remaining != 5 {
			t.Errorf("%s: what goes together with it was charged: %+v", kind, d)
		}
		if n := client.Exists(t.Context(), s.Name(kind, limit)).Val(); n != 1 {
			t.Errorf("%s: it is gone", kind)
		}
	}
}

// A denial under changed numbers stands, though its key cannot live longer.
func TestNoRoomForALongerLife(t *testing.T) {
	client := connect(t, redistest.Start(t))
	s := newStore(t, client)
	for _, texts := range [][2]string{{"10/20s", "10/10m"}, {"10/20s stepped", "10/10m stepped"}} {
		before, after := parse(t, texts[0]).Named("api"), parse(t, texts[1]).Named("api")
		client.ConfigSet(t.Context(), "maxmemory", "0")
		take(t, s, headgate.Request{Key: texts[0], Limit: before, Cost: 10})
		client.ConfigSet(t.Context(), "maxmemory", "1")
		d, err := s.Take(t.Context(), headgate.Request{Key: texts[0], Limit: after, Cost: 1})
		if err != nil || d.Allowed() {
			t.Errorf("%s: %+v, error %v; want it denied", texts, d, err)
		}
	}
}

// A server at maxmemory takes refunds, and a request that is granted has been written, whatever
// else is in its batch.
func TestNoRoomIsPerRequest(t *testing.T) {
	client := connect(t, redistest.Start(t))
	limit := parse(t, "1/h")
	for round := range 10 {
		s := patient(t, client, redisstore.Options{})
		key := func(i int) string { return strconv.Itoa(100*round + i) }
		client.ConfigSet(t.Context(), "maxmemory", "0")
		for i := range 3 {
			take(t, s, headgate.Request{Key: key(i), Limit: limit, Cost: 1})
		}
		client.ConfigSet(t.Context(), "maxmemory", "1")
		var rs []headgate.Request
		for i := range 9 {
			rs = append(rs, headgate.Request{Key: key(i), Limit: limit, Cost: 1})
		}
		for i := 2; i < 5; i++ { // two of them have nothing to give back
			rs[i].Cost = -1
		}
		h := holdUp(client)
		answers := make([]<-chan answer, len(rs))
		for _, i := range rand.Perm(len(rs)) {
			answers[i] = ask(t.Context(), s, rs[i])
		}
		close(h.free)
		for i := range answers {
			a := <-answers[i]
			kept := client.Exists(t.Context(), s.Name(key(i), limit)).Val() == 1
			switch {
			case rs[i].Cost < 0 && (a.err != nil || kept):
				t.Errorf("round %d, %d: %+v, kept: %t; want it given back", round, i, a, kept)
			case i < 2 && (a.err != nil || a.ds[0].Allowed()):
				t.Errorf("round %d, %d: %+v; want it denied", round, i, a)
			case i > 4 && (a.err == nil) != kept:
				t.Errorf("round %d, %d: %+v, kept: %t", round, i, a, kept)
			}
		}
	}
}

// A server at maxmemory fails a grant that overwrites a value in place, and nothing else of its
// batch.
func TestNoRoomInPlace(t *testing.T) {
	client := connect(t, redistest.Start(t))
	s := patient(t, client, redisstore.Options{})
	granted := headgate.Request{Key: "granted", Limit: parse(t, "9/h fixed-window"), Cost: 1}
	denied := headgate.Request{Key: "denied", Limit: parse(t, "1/h"), Cost: 1}
	take(t, s, granted)
	take(t, s, denied)
	client.ConfigSet(t.Context(), "maxmemory", "1")
	s.SetPace("denied", time.Microsecond) // one trip at a time
	h := holdUp(client)
	first := ask(t.Context(), s, denied)
	<-h.arrived
	answers := []<-chan answer{ask(t.Context(), s, denied), ask(t.Context(), s, granted)}
	close(h.free)
	for _, a := range []answer{<-first, <-answers[0]} {
		if a.err != nil || a.ds[0].Allowed() {
			t.Errorf("denied: %+v", a)
		}
	}
	if a := <-answers[1]; a.err == nil || !strings.HasPrefix(a.err.Error(), "redisstore: OOM ") {
		t.Errorf("granted: %+v; want OOM", a)
	}
}

// An error is about maxmemory by its code, not by the rest of its text: from Redis 7.2 on, an error
// names the user.
func TestNoRoomIsRecognizedByItsCode(t *testing.T) {
	server := redistest.Start(t)
	if _, err := server.Do(t.Context(), "ACL", "SETUSER", "LOOM", "on", ">pw", "~*", "+@all",
		"-set"); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "LOOM", Password: "pw"})
	t.Cleanup(func() { _ = client.Close() })
	_, err := newStore(t, client).Take(t.Context(),
		headgate.Request{Key: "k", Limit: parse(t, "1/h"), Cost: 1})
	if err == nil || strings.HasPrefix(err.Error(), "redisstore: OOM ") {
		t.Errorf("error %v", err)
	}
}
