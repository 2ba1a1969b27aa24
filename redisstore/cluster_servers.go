package redisstore

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// servers holds a queue for each server, so that one that does not answer delays no other.
type servers struct {
	single bool   // one server holds all keys
	common *queue // of that server, or of all until they are known

	// a Cluster has answered, so that asking which server has a key takes no time
	known    atomic.Bool
	byServer sync.Map // address -> *queue
}

// queue returns the queue of the server that has the key called name in Redis.
func (s *Store) queue(name string) *queue {
	if s.single {
		return s.common
	}
	addr := s.address(name)
	if addr == "" {
		return s.common
	}
	found, ok := s.byServer.Load(addr)
	if !ok {
		found, _ = s.byServer.LoadOrStore(addr, &queue{store: s})
	}
	q, _ := found.(*queue)
	return q
}

// Servers returns a function that names the server of a key, or nil if one server has all keys or a
// proxy finds it. With it, package fallback has a circuit breaker for each server.
func (s *Store) Servers() func(key string) string {
	if s.single || s.proxy {
		return nil
	}
	return func(key string) string { return s.address(s.key(key, "")) }
}

// address returns that of the server that has name, or "" if it is not known.
func (s *Store) address(name string) string {
	var server *redis.Client
	switch client := s.client.(type) {
	case *redis.ClusterClient:
		if s.known.Load() {
			server, _ = client.MasterForKey(context.Background(), name)
		}
	case *redis.Ring:
		server, _ = client.GetShardClientForKey(name)
	}
	if server == nil {
		return ""
	}
	return server.Options().Addr
}

func (s *servers) waiting() int64 {
	n := s.common.length()
	s.byServer.Range(func(_, found any) bool {
		q, _ := found.(*queue)
		n += q.length()
		return true
	})
	return n
}

// batchesByKey makes a batch of the calls of each key. Different keys seldom share a slot of a
// Cluster, and one call of a script cannot use two slots, nor two keys of a slot that is moving.
func batchesByKey(calls []*call) (all []*batch) {
	byKey := make(map[string]*batch)
	for _, c := range calls {
		key := c.requests[0].Key
		if byKey[key] == nil {
			byKey[key] = newBatch()
			all = append(all, byKey[key])
		}
		byKey[key].add(c)
	}
	return all
}
