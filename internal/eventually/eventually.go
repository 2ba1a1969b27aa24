// Package eventually waits, in tests, for what other goroutines and processes do.
package eventually

import (
	"testing"
	"time"
)

// True calls ok until it returns true, and fails t after a minute. what says what is awaited.
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// Equal calls get until it returns want, and fails t after a minute, with what it returned last.
func Equal[T comparable](t testing.TB, what string, get func() T, want T) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for got := get(); got != want; got = get() {
		if time.Now().After(end) {
			t.Fatalf("after a minute, %s is %v; want %v", what, got, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
