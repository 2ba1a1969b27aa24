package replay

import (
	"slices"

	"github.com/headgate/headgate/internal/algorithm"
)

// probe counts what one bucket denies. It decides as the token bucket of the limiter does, for
// all requests of one time together.
type probe struct {
	family int // index of its needs
	rest   bool
	size   int64

	rate, unit, full, repay int64 // as in algorithm.Rule

	at, used int64 // of the key
	ofKey    int64 // denied

	denied, deniedKeys int64
	list               bool // whether to keep
	keys               []deniedKey
}

// newProbe makes a probe of a family whose needs have index i.
func newProbe(f family, i int, size int64) *probe {
	refill := f.refill(size)
	g := algorithm.GCD(refill, f.period)
	p := &probe{family: i, rest: f.rest, size: size, rate: refill / g, unit: f.period / g}
	p.full = size * p.unit
	p.repay = (p.full + p.rate - 1) / p.rate
	return p
}

func (p *probe) reset() { p.at, p.used, p.ofKey = 0, 0, 0 }

// add decides the requests of one time.
func (p *probe) add(v visits) {
	if elapsed := v.at - p.at; elapsed >= p.repay {
		p.used = 0
	} else {
		p.used = max(p.used-elapsed*p.rate, 0)
	}
	p.at = v.at
	if v.n <= p.size && p.used+v.n*p.unit <= p.full {
		p.used += v.n * p.unit
		return
	}
	granted := min(v.n, (p.full-p.used)/p.unit)
	p.used += granted * p.unit
	p.ofKey += v.n - granted
}

// finish adds the denials of the key to the total.
func (p *probe) finish(key uint32) {
	if p.ofKey == 0 {
		return
	}
	p.denied += p.ofKey
	p.deniedKeys++
	if p.list {
		p.keys = append(p.keys, deniedKey{key, p.ofKey})
	}
}

// probes runs probes in one walk. A key that needs no more than the size of a probe is denied
// nothing by it, so only the others are read.
type probes struct {
	all      []*probe
	needs    [][]uint32 // by family and key
	standOut []uint32   // keys
	key      uint32
	active   []*probe // for the key
}

func (p *probes) begin(key uint32) bool {
	p.key, p.active = key, p.active[:0]
	standsOut := slices.Contains(p.standOut, key)
	for _, probe := range p.all {
		aside := standsOut && probe.rest
		if !aside && int64(p.needs[probe.family][key]) > probe.size {
			probe.reset()
			p.active = append(p.active, probe)
		}
	}
	return len(p.active) > 0
}

func (p *probes) see(vs []visits) {
	for _, probe := range p.active {
		for _, v := range vs {
			probe.add(v)
		}
	}
}

func (p *probes) end() {
	for _, probe := range p.active {
		probe.finish(p.key)
	}
}
