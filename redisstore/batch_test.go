package redisstore_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// Calls that come while a batch is under way share the next one, in their order.
func TestBatch(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	r := headgate.Request{Key: "k", Limit: parse(t, "5/h"), Cost: 1}
	h := holdUp(client)
	answers := []<-chan answer{ask(t.Context(), s, r)}
	<-h.arrived
	for range 9 {
		answers = append(answers, ask(t.Context(), s, r))
	}
	close(h.free)
	for i := range answers {
		if a := <-answers[i]; a.err != nil || a.ds[0].Allowed() != (i < 5) ||
			a.ds[0].Remaining != max(4-int64(i), 0) {
			t.Errorf("caller %d: %+v", i, a)
		}
	}
	if got := s.Stats(); got != (redisstore.Stats{Callers: 10, Batches: 2, Requests: 10}) {
		t.Errorf("stats %+v", got)
	}
}

// Whatever comes together, in whatever groups and order, each gets the answer that Memory
// gives if they come one after the other.
func TestBatchesAgree(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"single":  newClient(t),
		"cluster": newCluster(t),
		"ring": redis.NewRing(&redis.RingOptions{Addrs: map[string]string{
			"a": sharedServer(t).Addr, "b": redistest.Start(t).Addr,
		}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { _ = client.Close() })
			s := patient(t, client, redisstore.Options{})
			// the client knows the servers now
			take(t, s, headgate.Request{Key: "k", Limit: parse(t, "9/s"), Cost: 1})
			h := holdUp(client)
			for seed := range uint64(8) {
				if agree(t, s, h, seed); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// agree asks for groups that all wait at the same time. Each is of one key, and so all
// that is asked of a key is decided in the order of the callers.
func agree(t *testing.T, s *redisstore.Store, h *held, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	name := strconv.FormatUint(seed, 36)
	keys := []string{name, "{" + name, name + "}", "%" + name}
	var limits []headgate.Limit
	for _, text := range []string{"7/3s", "5/2s stepped", "6/s fixed-window", "8/2s sliding-window",
		"9/s sliding-log", "a=4/s", "a=5/2s"} {
		limits = append(limits, parse(t, text))
	}
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	memory := headgate.NewMemory()
	var answers []<-chan answer
	var want [][]headgate.Decision
	for range 200 {
		at = at.Add(time.Duration(random.IntN(100)) * time.Millisecond)
		rs := group(random, keys, limits, at)
		ds := make([]headgate.Decision, len(rs))
		if err := memory.TakeAll(t.Context(), rs, ds); err != nil {
			t.Fatal(err)
		}
		want = append(want, ds)
		answers = append(answers, ask(t.Context(), s, rs...))
	}
	for i := range answers {
		var a answer
		for answered := false; !answered; {
			select {
			case h.free <- struct{}{}:
			case a = <-answers[i]:
				answered = true
			}
		}
		if a.err != nil || !slices.Equal(a.ds, want[i]) {
			t.Errorf("group %d: %+v, error %v; want %+v", i, a.ds, a.err, want[i])
		}
	}
}

// group is of one key, and of one to three limits of different names.
func group(
	random *rand.Rand, keys []string, limits []headgate.Limit, at time.Time,
) []headgate.Request {
	key := keys[random.IntN(len(keys))]
	var rs []headgate.Request
	for _, i := range random.Perm(len(limits))[:1+random.IntN(3)] {
		r := headgate.Request{Key: key, Limit: limits[i], Cost: random.Int64N(5) - 1, At: at}
		if !slices.ContainsFunc(rs,
			func(o headgate.Request) bool { return o.Limit.ID() == r.Limit.ID() }) {
			rs = append(rs, r)
		}
	}
	return rs
}

// A foreign value is an error of the requests for its key, and of no other, whatever the requests
// before it in the batch have.
func TestForeignValues(t *testing.T) {
	client := newClient(t)
	s := patient(t, client, redisstore.Options{})
	limit := parse(t, "5/h")
	at := func(key string) string { return t.Name() + ":{" + key + "}:" + limit.ID() }
	client.Set(t.Context(), at("word"), "a word", 0)
	client.SAdd(t.Context(), at("set"), "member")
	keys := []string{"first", "word", "set", "good"}
	want := map[string]string{
		"word": `redisstore: BADSTATE the value of "TestForeignValues:{word}:5/h" is not a state ` +
			"of this limit; choose another prefix, or delete the key",
		"set": `redisstore: WRONGTYPE the value of "TestForeignValues:{set}:5/h" is not a ` +
			"string; another program uses the key: choose another prefix",
	}
	h := holdUp(client)
	answers := map[string][]<-chan answer{}
	for _, r := range []headgate.Request{
		{Cost: 1}, {Cost: 1, MaxWait: time.Hour}, {Cost: 2}, {Cost: 1, At: time.Now()}, {Cost: 1},
	} {
		for _, key := range keys {
			r.Key, r.Limit = key, limit
			answers[key] = append(answers[key], ask(t.Context(), s, r))
		}
	}
	close(h.free)
	for key, all := range answers {
		for i := range all {
			a := <-all[i]
			granted := a.err == nil && a.ds[0].Allowed() == (i < 4)
			refused := errors.Is(a.err, headgate.ErrBadState) && a.err.Error() == want[key] &&
				a.ds[0] == (headgate.Decision{})
			if want[key] == "" && !granted || want[key] != "" && !refused {
				t.Errorf("%s, %d: %+v", key, i, a)
			}
		}
	}
	if client.Get(t.Context(), at("word")).Val() != "a word" ||
		client.SCard(t.Context(), at("set")).Val() != 1 {
		t.Error("foreign values have changed")
	}
}

// A group may be of more keys than a batch has requests.
func TestLargeGroup(t *testing.T) {
	s := newStore(t, newClient(t))
	rs := make([]headgate.Request, 3000)
	for i := range rs {
		rs[i] = headgate.Request{Key: strconv.Itoa(i), Limit: parse(t, "2/h"), Cost: 1}
	}
	ds := make([]headgate.Decision, len(rs))
	for round := range int64(3) {
		if err := s.TakeAll(t.Context(), rs, ds); err != nil {
			t.Fatal(err)
		}
		for i, d := range ds {
			if d.Allowed() != (round < 2) || d.Remaining != max(1-round, 0) {
				t.Fatalf("round %d, request %d: %+v", round, i, d)
			}
		}
	}
}
