package redisstore

import (
	"hash/maphash"

	"github.com/redis/go-redis/v9"
)

// How many batches are under way at once, see ARCHITECTURE.md. In a Cluster each is for a
// part of the slots, so that a node that does not answer holds up hardly more than its own.
const (
	lanesOfOne     = 2
	lanesOfCluster = 16
)

// slots is how many a Cluster has.
const slots = 1 << 14

// route says which keys share a lane, and which a call of the script.
type route struct {
	kind  kind
	seed  maphash.Seed
	lanes []lane
}

// kind is a kind of client.
type kind uint8

const (
	other   kind = iota // a call must have one key
	single              // one server holds all keys
	cluster             // a call must have one slot
)

func kindOf(client redis.UniversalClient) kind {
	switch client.(type) {
	case *redis.Client:
		return single
	case *redis.ClusterClient:
		return cluster
	default:
		return other
	}
}

func newRoute(s *Store, client redis.UniversalClient) route {
	r := route{kind: kindOf(client), seed: maphash.MakeSeed(), lanes: make([]lane, lanesOfCluster)}
	if r.kind == single {
		r.lanes = r.lanes[:lanesOfOne]
	}
	for i := range r.lanes {
		r.lanes[i].store = s
	}
	return r
}

// lane is that of a key.
func (r *route) lane(key string) *lane {
	if r.kind == cluster {
		return &r.lanes[slot(key)*len(r.lanes)/slots]
	}
	return &r.lanes[maphash.String(r.seed, key)%uint64(len(r.lanes))]
}

// place is where the requests of a key are decided: those of one place share a call.
type place struct {
	slot int
	key  string
}

func (r *route) place(key string) place {
	switch r.kind {
	case single:
		return place{}
	case cluster:
		return place{slot: slot(key)}
	default:
		return place{key: key}
	}
}

// part makes a batch of the asks of each place.
func (r *route) part(asks []*ask) []*batch {
	if r.kind == single {
		b := newBatch()
		for _, a := range asks {
			b.add(a)
		}
		return []*batch{b}
	}
	var all []*batch
	at := make(map[place]*batch)
	for _, a := range asks {
		p := r.place(a.requests[0].Key)
		if at[p] == nil {
			at[p] = newBatch()
			all = append(all, at[p])
		}
		at[p].add(a)
	}
	return all
}

// slot is that of a key of a [Store] in a Cluster: CRC-16 of what stands in its braces, in
// the variant XMODEM (Redis Cluster Specification, Key distribution model).
func slot(key string) int {
	key = escape(key)
	sum := uint16(0)
	for i := range len(key) {
		sum ^= uint16(key[i]) << 8
		for range 8 {
			carry := sum >> 15
			sum = sum<<1 ^ carry*0x1021
		}
	}
	return int(sum % slots)
}
