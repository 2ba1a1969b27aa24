package gate

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
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

func triesKey(t *testing.T, k *KeyedGate, key string) bool {
	t.Helper()
	passed, err := k.TryWait(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return passed
}

func isInvalid(err error) bool {
	_, is := errors.AsType[*headgate.InvalidError](err)
	return is
}
