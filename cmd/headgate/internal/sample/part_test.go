package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// TestTogether: the requests of several instances, sent as texts, are those of one that has seen
// all of them, for random traffic of all causes and any bytes in keys.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 3))
		one, several := New(), []*Sample{New(), New(), New()}
		several[2].budget = 60_000 // its share is halved
		for range 4000 {
			time.Sleep(time.Duration(60+random.IntN(60)) * time.Millisecond)
			e := event(fmt.Sprintf("k\xff%d", random.IntN(800)), 1+random.Int64N(3), rules.Outcome(random.IntN(3)))
			if e.Cause = rules.Cause(random.IntN(4)); e.Cause == rules.ByBan {
				e.Outcome = rules.Denied
			}
			one.Add(e)
			several[random.IntN(3)].Add(e)
		}
		var parts []Part
		class := uint32(0)
		for i, s := range several {
			p := s.Part("api")
			p.Name = fmt.Sprint(i)
			read, err := Decode(p.Encode(1 << 20))
			if err != nil || read.Name != p.Name || read.KeyShare() != p.KeyShare() || len(read.entries) != len(p.entries) {
				t.Fatalf("%v: %s with %d entries, want %d", err, read.Name, len(read.entries), len(p.entries))
			}
			parts, class = append(parts, read), max(class, p.class)
		}
		if class == 0 {
			t.Fatal("no share was halved")
		}
		whole := one.Part("api")
		whole.raise(class)
		for _, lifted := range []bool{false, true} {
			got, want := Together(parts, 1<<20, lifted), Together([]Part{whole}, 1<<20, lifted)
			if got.KeyShare != want.KeyShare || got.Denied != want.Denied || got.Keys != want.Keys ||
				got.DeniedBy != want.DeniedBy || got.Aside != want.Aside || !slices.Equal(got.Requests, want.Requests) {
				t.Errorf("lifted %v: %d requests of %d keys, %d denied; want %d of %d, %d", lifted, len(got.Requests), got.Keys, got.Denied, len(want.Requests), want.Keys, want.Denied)
			}
			if lifted != (got.Aside == 0) || got.Denied == 0 || len(got.Requests) < 100 {
				t.Errorf("lifted %v: %d aside of %d", lifted, got.Aside, len(got.Requests))
			}
		}
	})
}

// TestTogetherSince: what one instance does not know any more counts of none.
func TestTogetherSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := New()
		old.Add(event("k", 1, rules.Allowed))
		time.Sleep(time.Minute)
		young := New()
		old.Add(event("k", 2, rules.Allowed))
		before := old.Part("api")
		time.Sleep(time.Second)
		young.Add(event("k", 3, rules.Allowed))
		found := Together([]Part{before, young.Part("api")}, 100, false)
		if found.From != young.started || !slices.ContainsFunc(found.Requests, func(r replay.Request) bool { return r.Cost == 2 }) || len(found.Requests) != 1 {
			t.Errorf("from %v: %+v", found.From, found.Requests)
		}
	})
}

// TestEncodeIsBounded: keys are dropped until the text fits; of a few keys, the oldest requests.
func TestEncodeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, keys := range []int{1, 20_000} {
			s := New()
			for i := range 40_000 {
				time.Sleep(time.Millisecond)
				s.Add(event(fmt.Sprint("key ", i%keys), 1+int64(i%3), rules.Allowed))
			}
			p := s.Part("api")
			for _, most := range []int{50_000, 5_000, 500} {
				text := p.Encode(most)
				read, err := Decode(text)
				if err != nil || len(text) > most || len(read.entries) == 0 {
					t.Fatalf("%d keys in %d bytes: %d bytes with %d entries, %v", keys, most, len(text), len(read.entries), err)
				}
				if smaller := read.KeyShare() < p.KeyShare(); smaller != (keys > 1) || read.From.Before(p.From) {
					t.Errorf("%d keys in %d bytes: share %v since %v", keys, most, read.KeyShare(), read.From)
				}
			}
		}
	})
}

// TestDecodeOfOthers: texts that no Part has are errors.
func TestDecodeOfOthers(t *testing.T) {
	s := New()
	s.Add(event("k", 1, rules.Allowed))
	part := s.Part("api")
	text := part.Encode(1000)
	for n := range len(text) - 8 { // the rest is the end of the compression
		if _, err := Decode(text[:n]); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(text))
		}
	}
	for _, change := range []func(*entry){
		func(e *entry) { e.cost = 0 },
		func(e *entry) { e.n = maxEqual + 1 },
		func(e *entry) { e.outcome = rules.Failed },
		func(e *entry) { e.cause = rules.ByPermits + 1 },
	} {
		p := s.Part("api")
		change(&p.entries[0])
		if _, err := Decode(p.Encode(1000)); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("%+v: %v", p.entries[0], err)
		}
	}
}
