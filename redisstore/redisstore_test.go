package redisstore_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

func TestSingle(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	limittest.Run(t, func(t *testing.T) headgate.Store { return newStore(t, client) })
}

// newStore makes a store that shares nothing with those of other tests.
func newStore(t *testing.T, client redis.UniversalClient) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client, redisstore.Options{Prefix: t.Name() + ":"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
