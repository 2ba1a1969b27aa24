package algorithm

import (
	"math/rand/v2"
	"testing"
)

// The multiplication is the division, for all dividends up to 2^62: around every
// multiple, where an error would show first, at the ends, and at random.
func TestDivisorDividesExactly(t *testing.T) {
	const most = int64(1) << 62
	random := rand.New(rand.NewPCG(8, 0))
	check := func(x, n int64) {
		d := newDivisor(n)
		if q, rest := d.floor(x), d.rest(x); q != x/n || rest != x%n {
			t.Fatalf("%d / %d is %d, rest %d; want %d, rest %d", x, n, q, rest, x/n, x%n)
		}
		if x > most-n {
			return
		}
		if q := d.ceil(x); q != (x+n-1)/n {
			t.Fatalf("%d / %d rounded up is %d, want %d", x, n, q, (x+n-1)/n)
		}
	}
	around := func(n int64) {
		for _, x := range []int64{0, 1, n - 1, n, n + 1, MaxExact, MaxExact / n * n,
			most/n*n - 1, most / n * n, most - 1, most} {
			check(x, n)
		}
		multiple := n * (1 + random.Int64N(most/n))
		check(multiple-1, n)
		check(multiple, n)
		check(upTo(random, most), n)
	}
	for n := range int64(5000) {
		around(n + 1)
	}
	for bit := range 54 {
		for _, n := range []int64{1<<bit - 1, 1 << bit, 1<<bit + 1} {
			if n > 0 && n <= 1<<53 {
				around(n)
			}
		}
	}
	for _, micros := range periods {
		around(micros)
	}
	for range 200_000 {
		around(upTo(random, MaxExact))
	}
}
