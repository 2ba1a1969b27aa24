package redisstore

import (
	"sync"

	"github.com/headgate/headgate"
)

// ask is what one caller asks: requests that are decided together. All in it is its own,
// because the caller may leave.
type ask struct {
	requests  []headgate.Request
	names     []string // of the keys in Redis
	decisions []headgate.Decision
	how       manner

	err      error
	panicked any           // in a hook of the client
	done     chan struct{} // told once it is answered

	sent, left bool // under the lock of its lane

	request  [1]headgate.Request
	name     [1]string
	decision [1]headgate.Decision
}

var asks = sync.Pool{New: func() any { return &ask{done: make(chan struct{}, 1)} }}

// ask makes what asks for rs.
func (s *Store) ask(rs []headgate.Request, how manner) *ask {
	a, _ := asks.Get().(*ask)
	a.how = how
	if len(rs) == 1 {
		a.requests, a.names, a.decisions = a.request[:], a.name[:], a.decision[:]
	} else {
		a.requests, a.names, a.decisions = make([]headgate.Request, len(rs)), make([]string, len(rs)), make([]headgate.Decision, len(rs))
	}
	copy(a.requests, rs)
	for i, r := range rs {
		a.names[i] = s.key(r.Key, r.Limit)
		if r.Start != nil {
			start := *r.Start // the caller may leave
			a.requests[i].Start = &start
		}
	}
	return a
}

// free lets a be used again. No lane may hold it.
func (a *ask) free() {
	*a = ask{done: a.done}
	asks.Put(a)
}
