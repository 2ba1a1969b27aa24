package gate

import (
	"testing"
	"time"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// exact is New without the leeway, so that passes come at round times.
func exact(n int64, period time.Duration) *Gate {
	g := must(New(n, period))
	g.period = int64(period)
	return g
}

// tries reports whether TryWait passes, and fails the test after an error.
func tries(t *testing.T, g *Gate, timeout time.Duration) bool {
	t.Helper()
	passed, err := g.TryWait(t.Context(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	return passed
}
