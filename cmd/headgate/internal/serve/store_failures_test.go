package serve

import (
	"fmt"
	"slices"
	"testing"

	"github.com/headgate/headgate/fallback"
)

// One line says that calls began to fail, and one that they ended.
func TestFailureLog(t *testing.T) {
	var got []string
	f := failureLog{log: func(text string, failed uint64) {
		got = append(got, fmt.Sprint(failed, " ", text))
	}}
	for _, failures := range append([]uint64{0, 0, 3, 9, 9, 9, 9},
		slices.Repeat([]uint64{10}, calmPings+2)...) {
		f.look(fallback.Stats{Failures: failures})
	}
	f.look(fallback.Stats{Failures: 50, Degraded: true})
	want := []string{
		"3 calls of the store fail, or take too long", "10 calls of the store succeed again",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
