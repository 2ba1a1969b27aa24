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

// tries reports whether TryWait passes, and fails the test after an error.
func tries(t *testing.T, g *Gate, timeout time.Duration) bool {
	t.Helper()
	passed, err := g.TryWait(t.Context(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	return passed
}
