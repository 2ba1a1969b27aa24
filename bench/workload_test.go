package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// smallPlan is a plan with which every workload can be run in a test.
func smallPlan() plan {
	p := quickPlan()
	p.keys, p.hot, p.denied, p.redisKeys, p.weighKeys, p.clients = 2000, 2, 2, 200, 50, 200
	p.levels, p.sharers, p.span = []int{1, 16}, []int{16}, p.span/10
	p.rates, p.paced = []int{5000}, 10*time.Millisecond
	p.crowd = 20 * time.Millisecond
	return p
}

func TestWorkloadsTouchWhatTheyClaim(t *testing.T) {
	full, quick := fullPlan(1), quickPlan()
	ws := slices.Concat(full.memoryWorkloads(), full.httpWorkloads(), full.redisWorkloads(),
		quick.memoryWorkloads(), quick.httpWorkloads(), quick.redisWorkloads())
	for _, l := range slices.Concat(full.pacedLoads(), quick.pacedLoads()) {
		ws = append(ws, l.Workload)
	}
	for _, w := range ws {
		t.Run(w.Name, func(t *testing.T) {
			if err := w.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestVerifyRefusesFalseClaims(t *testing.T) {
	tests := []struct {
		name  string
		seq   Sequence
		claim Claim
	}{
		{"one key that says it is a thousand", repeatedKey(1000), Claim{Keys: 1000, MaxTop: 1}},
		{"a thousand keys that say they are one", shuffledKeys(1000), Claim{Keys: 1, MaxTop: 1}},
		{"too few keys", repeatedKey(1000), Claim{MinKeys: 2, MaxTop: 1}},
		{"nobody is popular", shuffledKeys(1000), Claim{MinKeys: 2, MinTop: 0.01, MaxTop: 1}},
		{"somebody is too popular", repeatedKey(1000), Claim{Keys: 1, MaxTop: 0.5}},
	}
	for _, tt := range tests {
		w := &Workload{Name: tt.name, Seq: tt.seq, Claim: tt.claim}
		if w.Verify() == nil {
			t.Errorf("%s: verified", tt.name)
		}
	}
}

// The names are what contenders see, the numbers what Redis runs count by.
func TestSequenceNamesItsNumbers(t *testing.T) {
	for _, s := range []Sequence{repeatedKey(3), shuffledKeys(500), zipfKeys(500, 100), shuffledKeys(500).addressed()} {
		byName := make(map[string]uint32)
		for i, id := range s.ids {
			key := s.Key(i)
			if was, ok := byName[key]; ok && was != id {
				t.Fatalf("key %q names both %d and %d", key, was, id)
			}
			byName[key] = id
		}
		if all, _ := s.distinct(); all != len(byName) {
			t.Errorf("distinct says %d keys, want %d", all, len(byName))
		}
	}
}

func TestTouchedGoesRound(t *testing.T) {
	seen := newTouched(shuffledKeys(10))
	seen.mark(8, 4) // 8, 9, 0, 1
	if seen.keys() != 4 {
		t.Errorf("4 takes across the end touched %d keys", seen.keys())
	}
	seen.mark(0, 1000)
	if seen.keys() != 10 {
		t.Errorf("many takes touched %d of 10 keys", seen.keys())
	}
}

// A contender that lies is found out: the counts of its answers are part of
// what a run verifies.
func TestRunsFindLiars(t *testing.T) {
	tests := []struct {
		name string
		liar func(take int) bool
		w    *Workload
		want string
	}{
		{"grants everything to an exact workload", func(int) bool { return true }, uniform(100), "had to be denied"},
		{"grants everything to a denial", func(int) bool { return true }, denial(100, 1), "had to be denied"},
		{"denies everything", func(int) bool { return false }, uniform(100), "had to be granted"},
		{"denies one", func(take int) bool { return take != 150 }, uniform(100), "had to be granted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			open := func(Setup) (Contender, error) { return &liar{answer: tt.liar}, nil }
			run := memoryRun{out: new(Results)}
			err := run.measure(Entry{Name: "liar", Open: open}, tt.w)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Redis finds out who does not count in it, and a loop who answers wrongly.
func TestRedisRunsFindLiars(t *testing.T) {
	const n = 100
	always := func(int) bool { return true }
	tests := []struct {
		name string
		liar func(take int) bool
		keys int
		want string
	}{
		{"denies after the warm-up", func(take int) bool { return take <= n }, noKeys, "had to be granted"},
		{"counts elsewhere", always, 1, "0 keys in Redis where 100 were touched"},
	}
	err := withRedis(t.Context(), func(server *redisServer) error {
		for _, tt := range tests {
			w := uniform(n)
			e := Entry{
				Name: "liar", RedisKeys: tt.keys,
				Open: func(Setup) (Contender, error) { return &liar{answer: tt.liar}, nil },
			}
			_, closed := redisRun{server: server, span: time.Millisecond}.measure(t.Context(), e, w, 2)
			_, open := pacedRun{server: server}.measure(t.Context(), e, newPacedLoad(w, 1000, 10*time.Millisecond))
			for _, err := range []error{closed, open} {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: error is %v, want one with %q", tt.name, err, tt.want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
