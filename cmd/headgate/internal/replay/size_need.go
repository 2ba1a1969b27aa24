package replay

import (
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// family is a set of token buckets of one period. It has one bucket for each size: n/period with
// n = size if the rate is 0, and otherwise rate/period burst size. A larger bucket of a family
// never denies more requests, and never other keys.
type family struct {
	period int64 // microseconds
	rate   int64
	rest   bool // whether keys that stand out are set aside
}

// refill returns the tokens that flow in each period.
func (f family) refill(size int64) int64 {
	if f.rate > 0 {
		return f.rate
	}
	return size
}

// limit returns the limit of a size that can be counted.
func (f family) limit(size int64) headgate.Limit {
	period := time.Duration(f.period) * time.Microsecond
	return headgate.Per(f.refill(size), period).Burst(size)
}

// need finds the smallest bucket of a family that denies no request of a key. That is the smallest
// size for which each interval holds at most size + refill x length / period requests.
type need struct {
	family

	size  int64
	total int64   // requests of the key so far
	hull  []start // the first is where the fullest interval begins
}

// start is the beginning of an interval, and the requests before it.
type start struct{ at, before int64 }

func (n *need) reset() { n.size, n.total, n.hull = 0, 0, n.hull[:0] }

// add adds the requests of one time.
func (n *need) add(v visits) {
	if len(n.hull) == 0 || n.drained(v.at) {
		n.hull = append(n.hull[:0], start{v.at, n.total})
	} else if n.rate == 0 {
		n.push(start{v.at, n.total})
	}
	n.total += v.n
	if n.rate > 0 {
		n.fill(v.at)
	} else {
		n.grow(v.at)
	}
}

// drained reports whether the bucket is full again: later intervals begin at a later start.
func (n *need) drained(at int64) bool {
	first := n.hull[0]
	return !product(n.total-first.before, n.period).above(product(n.refill(n.size), at-first.at))
}

// fill makes the burst large enough for the interval that ends at at.
func (n *need) fill(at int64) {
	first := n.hull[0]
	count := n.total - first.before
	flow := product(n.rate, at-first.at)
	if !product(max(count-n.size, 0), n.period).above(flow) {
		return
	}
	n.size = count - flow.over(n.period)
}

// grow makes the size large enough for all intervals that end at at.
func (n *need) grow(at int64) {
	first := n.hull[0]
	if !product(n.total-first.before, n.period).above(product(n.size, n.period+at-first.at)) {
		return
	}
	for _, s := range n.hull {
		// count <= size + size x length / period, rounded up
		length := n.period + at - s.at
		q, more := product(n.total-s.before, n.period).divide(length)
		if more {
			q++
		}
		n.size = max(n.size, q)
	}
	n.advance()
}

// advance drops the starts whose intervals are no longer the fullest at the rate of size, and
// will not be at a higher one.
func (n *need) advance() {
	i := 0
	for i+1 < len(n.hull) {
		a, b := n.hull[i], n.hull[i+1]
		if product(b.before-a.before, n.period).above(product(n.size, b.at-a.at)) {
			break
		}
		i++
	}
	n.hull = append(n.hull[:0], n.hull[i:]...)
}

// push adds a start to the lower convex hull of starts: only those on it begin the fullest interval
// at some rate.
func (n *need) push(s start) {
	if n.hull[len(n.hull)-1].at == s.at {
		return // the earlier one has fewer requests before it
	}
	for len(n.hull) >= 2 {
		a, b := n.hull[len(n.hull)-2], n.hull[len(n.hull)-1]
		if product(s.before-b.before, b.at-a.at).above(product(b.before-a.before, s.at-b.at)) {
			break
		}
		n.hull = n.hull[:len(n.hull)-1]
	}
	n.hull = append(n.hull, s)
}

// wide is a product of two numbers below 2^63.
type wide struct{ hi, lo uint64 }

func product(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return wide{hi, lo}
}

func (w wide) above(o wide) bool { return w.hi > o.hi || w.hi == o.hi && w.lo > o.lo }

// over returns w / d, rounded down. The result must be below 2^63.
func (w wide) over(d int64) int64 {
	q, _ := w.divide(d)
	return q
}

// divide is over that also reports whether something is left.
func (w wide) divide(d int64) (q int64, more bool) {
	quotient, rest := bits.Div64(w.hi, w.lo, uint64(d))
	return int64(quotient), rest > 0
}

// needs finds what each key needs of each family.
type needs struct {
	key   uint32
	meter []need     // by family
	sizes [][]uint32 // by family and key
}

func newNeeds(families []family, keys int) *needs {
	n := &needs{}
	for _, f := range families {
		n.meter = append(n.meter, need{family: f})
		n.sizes = append(n.sizes, make([]uint32, keys))
	}
	return n
}

func (n *needs) begin(key uint32) bool {
	n.key = key
	for i := range n.meter {
		n.meter[i].reset()
	}
	return true
}

func (n *needs) see(vs []visits) {
	for i := range n.meter {
		m := &n.meter[i]
		for _, v := range vs {
			m.add(v)
		}
	}
}

func (n *needs) end() {
	for i := range n.meter {
		n.sizes[i][n.key] = uint32(n.meter[i].size)
	}
}
