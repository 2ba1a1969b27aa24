package redisstore

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// lanesOfServer is how many batches are under way to a server at once, see ARCHITECTURE.md:
// while it decides one, the other travels.
const lanesOfServer = 2

// lanes are those to one server.
type lanes [lanesOfServer]lane

// unused is for how long nobody has asked a server whose lanes may be forgotten.
const unused = time.Minute

// route says which keys share a lane, and which a call of the script.
type route struct {
	client redis.UniversalClient
	single bool // one server holds all keys
	seed   maphash.Seed
	store  *Store

	one     *lanes      // to that server, or to those that the client does not tell apart
	servers sync.Map    // *redis.Client -> *lanes
	known   atomic.Bool // the servers are, so that asking for one takes no time
	first   sync.Once
}

func (r *route) init(s *Store) {
	_, r.single = s.client.(*redis.Client)
	r.client, r.store, r.seed = s.client, s, maphash.MakeSeed()
	r.one = r.lanes()
}

func (r *route) lanes() *lanes {
	l := new(lanes)
	for i := range l {
		l[i].store, l[i].since = r.store, time.Now()
	}
	return l
}

// lane is that of a key, called name in Redis. Each server has its own, so that one that does
// not answer holds up nobody else.
func (r *route) lane(key, name string) *lane {
	return &r.to(name)[maphash.String(r.seed, key)%lanesOfServer]
}

// to gives the lanes to the server that has name.
func (r *route) to(name string) *lanes {
	server := r.server(name)
	if server == nil {
		return r.one
	}
	l, ok := r.servers.Load(server)
	if !ok {
		r.forget()
		l, _ = r.servers.LoadOrStore(server, r.lanes())
	}
	known, _ := l.(*lanes)
	return known
}

// forget closes the lanes to servers that nobody has asked lately: now that a new one has come, some
// of them may have gone. Those that are asked again get others.
func (r *route) forget() {
	r.servers.Range(func(server, value any) bool {
		if l, _ := value.(*lanes); l.close() {
			r.servers.CompareAndDelete(server, value)
		}
		return true
	})
}

// close closes all lanes, or none if one is in use, and says which.
func (all *lanes) close() bool {
	for i := range all {
		l := &all[i]
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.busy || l.lost > 0 || time.Since(l.since) < unused {
			return false
		}
	}
	for i := range all {
		all[i].closed = true
	}
	return true
}

// server is the client of the server that has name, nil if there is but one, or none is known.
func (r *route) server(name string) *redis.Client {
	if r.single {
		return nil
	}
	var server *redis.Client
	switch client := r.client.(type) {
	case *redis.ClusterClient:
		if r.known.Load() {
			server, _ = client.MasterForKey(context.Background(), name)
		} else {
			r.first.Do(func() { go r.learn(client, name) })
		}
	case *redis.Ring:
		server, _ = client.GetShardClientForKey(name)
	}
	return server
}

// learn lets client ask its servers who has what, which may take a while. Until then all keys
// share the lanes of one, and when they part their order may not hold.
func (r *route) learn(client *redis.ClusterClient, name string) {
	defer func() { _ = recover() }() // of a hook of the client: nobody is there to deal with it
	if _, err := client.MasterForKey(context.Background(), name); err == nil {
		r.known.Store(true)
	}
}

// part makes batches of asks: one of all if they lie on one server, and one of each key
// otherwise. Different keys seldom have one slot of a Cluster, and cannot be asked together
// while that moves.
func (r *route) part(asks []*ask) []*batch {
	if r.single {
		b := newBatch()
		for _, a := range asks {
			b.add(a)
		}
		return []*batch{b}
	}
	var all []*batch
	at := make(map[string]*batch)
	for _, a := range asks {
		key := a.requests[0].Key
		if at[key] == nil {
			at[key] = newBatch()
			all = append(all, at[key])
		}
		at[key].add(a)
	}
	return all
}
