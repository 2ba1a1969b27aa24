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
	other   kind = iota // several servers
	single              // one server holds all keys
	cluster             // several servers that share the slots
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

// part makes batches of asks: one of all if they lie on one server, and of each key one
// otherwise. Different keys seldom have one slot of a Cluster, and cannot be asked together
// while that moves.
func (r *route) part(asks []*ask) []*batch {
	var all []*batch
	at := make(map[string]*batch)
	for _, a := range asks {
		key := ""
		if r.kind != single {
			key = a.requests[0].Key
		}
		if at[key] == nil {
			at[key] = newBatch()
			all = append(all, at[key])
		}
		at[key].add(a)
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
