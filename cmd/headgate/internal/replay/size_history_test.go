package replay

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// recorder keeps what a walk shows.
type recorder struct {
	seen map[uint32][]visits
	key  uint32
	last int64 // key
}

func (r *recorder) begin(key uint32) bool {
	if int64(key) <= r.last {
		panic("keys are out of order")
	}
	r.key, r.last = key, int64(key)
	return key%5 != 4
}

func (r *recorder) see(vs []visits) {
	for _, v := range vs {
		old := r.seen[r.key]
		if n := len(old); n > 0 && old[n-1].at == v.at {
			old[n-1].n += v.n
			continue
		}
		r.seen[r.key] = append(old, v)
	}
}

func (*recorder) end() {}

// The history returns what was added, however many runs there are.
func TestHistory(t *testing.T) {
	for _, perRun := range []int{1 << 20, 1, 7, 1000} {
		r := rand.New(rand.NewPCG(1, 2))
		h := newHistory()
		h.perRun = perRun
		want := map[uint32][]visits{}
		now := int64(1)
		for range 2000 {
			now += []int64{0, 1, 1e6, 3600e6, 86400e6 * 400, 123457}[r.IntN(6)]
			key := uint32(r.ExpFloat64() * 20)
			h.add(record{at: now, key: key})
			if key%5 == 4 {
				continue
			}
			if vs := want[key]; len(vs) > 0 && vs[len(vs)-1].at == now {
				vs[len(vs)-1].n++
			} else {
				want[key] = append(vs, visits{now, 1})
			}
		}
		for range 2 {
			got := &recorder{seen: map[uint32][]visits{}, last: -1}
			if err := h.walk(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.seen, want) {
				t.Errorf("runs of %d requests: the walk differs from what was added", perRun)
			}
		}
	}
}

// A size is the smallest that can be counted.
func TestExact(t *testing.T) {
	t.Parallel()
	for _, period := range []time.Duration{time.Hour, 24 * time.Hour, 365 * 24 * time.Hour, 86399999999 * time.Microsecond, time.Microsecond} {
		f := family{period: period.Microseconds()}
		for _, size := range []int64{1, 7, 50_000, 52_125, 100_003, 1_250_999, 1_251_001} {
			got, want := f.rounded(size), size
			for want < size+200_000 && headgate.Per(want, period).Validate() != nil {
				want++
			}
			if want < size+200_000 && got != want || f.limit(got).Validate() != nil {
				t.Errorf("%d/%s: %d, want %d", size, period, got, want)
			}
		}
	}
}
