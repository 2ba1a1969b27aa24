package redisstore_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/limittest"
	"github.com/redis/go-redis/v9"
)

func TestConcurrency(t *testing.T) {
	client := newClient(t)
	limittest.RunConcurrency(t, func(t *testing.T) headgate.ConcurrencyStore { return newStore(t, client) })
}

func TestConcurrencyInCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs})
	t.Cleanup(func() { _ = client.Close() })
	limittest.RunConcurrency(t, func(t *testing.T) headgate.ConcurrencyStore { return newStore(t, client) })
}
