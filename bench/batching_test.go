package main

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/redistest"
)

// Takes of one key in one question are decided one after the other, all at one instant:
// exactly as many are granted as the limit holds.
func TestWaysDecideOneKeyManyTimes(t *testing.T) {
	const n = 7
	server := redistest.Start(t)
	s := Setup{Terms: Terms{Burst: n, Every: refill}, Addr: server.Addr}
	rueidis, err := openScriptRueidis(s)
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]way{"script": newScriptWay(s), "counter": newCounterWay(s), "rueidis": rueidis.(single)}
	for name, w := range ways {
		granted, err := w.decide(slices.Repeat([]string{name}, n+2))
		if err != nil {
			t.Fatal(err)
		}
		want := append(slices.Repeat([]bool{true}, n), false, false)
		if !slices.Equal(granted, want) {
			t.Errorf("%s: %v, want %v", name, granted, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
