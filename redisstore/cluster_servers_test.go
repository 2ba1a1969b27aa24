package redisstore_test

import (
	"strconv"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// The keys of one primary of a Cluster share a queue, and those of different ones do not.
func TestQueuesOfACluster(t *testing.T) {
	cluster := sharedCluster(t)
	client := newCluster(t)
	s, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// the client knows the servers now
	take(t, s, headgate.Request{Key: "k", Limit: parse(t, "5/h"), Cost: 1})
	primaries := make(map[string]int) // a key of each
	for i := range 60 {
		key := strconv.Itoa(i)
		slot, err := client.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		primary := cluster.Addrs[slot*3/16384]
		if got := s.Server(key); got != primary {
			t.Errorf("key %d is sent to %s; want %s", i, got, primary)
		}
		if _, ok := primaries[primary]; !ok {
			primaries[primary] = i
		}
		for other, one := range primaries {
			if s.SameQueue(key, strconv.Itoa(one)) != (other == primary) {
				t.Errorf("keys %d and %d, of %s and %s: shared: %t", i, one, primary, other,
					other != primary)
			}
		}
	}
	if len(primaries) != 3 {
		t.Errorf("keys of %d servers tell too little", len(primaries))
	}
}
