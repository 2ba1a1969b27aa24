package algorithm

import "math/bits"

// divisor divides by a constant with a multiplication, which takes a quarter of
// the time of a division. It is exact for dividends from 0 to 2^62 (T. Granlund and
// P. L. Montgomery, Division by Invariant Integers using Multiplication, 1994).
type divisor struct {
	n     int64
	magic uint64 // 2^(63+shift) / n, rounded up
	shift uint8  // floor(log2 n)
}

// newDivisor is for n from 1 to 2^53.
func newDivisor(n int64) divisor {
	shift := bits.Len64(uint64(n)) - 1
	magic, _ := bits.Div64(1<<shift>>1, uint64(1<<shift&1)<<63, uint64(n))
	return divisor{n: n, magic: magic + 1, shift: uint8(shift)}
}

// floor is x / n, rounded down.
func (d *divisor) floor(x int64) int64 {
	q, _ := bits.Mul64(uint64(x)<<1, d.magic)
	return int64(q >> d.shift)
}

// ceil is x / n, rounded up.
func (d *divisor) ceil(x int64) int64 { return d.floor(x + d.n - 1) }

// rest is x modulo n.
func (d *divisor) rest(x int64) int64 { return x - d.floor(x)*d.n }
