package redisstore_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// The keys of one primary of a Cluster share lanes, and those of different ones do not.
func TestLanesOfACluster(t *testing.T) {
	cluster := redistest.StartReplicatedCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs})
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	take(t, s, headgate.Request{Key: "k", Limit: parse(t, "5/h"), Cost: 1}) // it knows now who has what
	primaries := make(map[string]int)                                       // a key of each
	for i := range 60 {
		key := strconv.Itoa(i)
		slot, err := client.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		primary := cluster.Addrs[slot*3/16384]
		if got := s.Server(key); got != primary {
			t.Errorf("key %d is sent to the lanes of %s; want %s", i, got, primary)
		}
		if _, ok := primaries[primary]; !ok {
			primaries[primary] = i
		}
		for other, one := range primaries {
			if s.SameLanes(key, strconv.Itoa(one)) != (other == primary) {
				t.Errorf("keys %d and %d, of %s and %s: lanes shared: %t", i, one, primary, other, other != primary)
			}
		}
	}
	if len(primaries) != 3 {
		t.Errorf("keys of %d servers tell too little", len(primaries))
	}
}

// Lanes of servers that have gone are forgotten when a new one comes, but for those where somebody waits.
func TestServersThatHaveGone(t *testing.T) {
	servers := [2]*redistest.Server{redistest.Start(t), redistest.Start(t)}
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": servers[0].Addr}})
	t.Cleanup(func() { _ = client.Close() })
	s := patient(t, client, redisstore.Options{})
	r := headgate.Request{Key: "k", Limit: parse(t, "500/h"), Cost: 1}
	for i := range 20 {
		client.SetAddrs(map[string]string{"a": servers[i%2].Addr})
		take(t, s, r)
		if n := s.Servers(); n > 2 {
			t.Fatalf("the lanes of %d servers are kept for one", n)
		}
		for !s.Idle(r.Key) { // its sender may not have left yet
			runtime.Gosched()
		}
		s.Age(time.Hour)
	}
	h := holdUp(client)
	late := []<-chan answer{ask(t.Context(), s, r)}
	<-h.arrived
	late = append(late, ask(t.Context(), s, r))
	s.Age(time.Hour)
	client.SetAddrs(map[string]string{"a": servers[0].Addr})
	late = append(late, ask(t.Context(), s, r))
	if n := s.Servers(); n != 2 {
		t.Errorf("the lanes of %d servers are kept; want those of the new one, and of one that is waited for", n)
	}
	close(h.free)
	for i := range late {
		if a := <-late[i]; a.err != nil {
			t.Error(a.err)
		}
	}
}

// Lanes that were used lately are kept.
func TestServersThatAreAsked(t *testing.T) {
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = client.Close() })
	s := patient(t, client, redisstore.Options{})
	for i := range 20 {
		take(t, s, headgate.Request{Key: strconv.Itoa(i), Limit: parse(t, "5/h"), Cost: 1})
	}
	if n := s.Servers(); n != 2 {
		t.Errorf("the lanes of %d servers are kept; want 2", n)
	}
}

// Who has found a lane just before it is forgotten is sent to another one.
func TestForgottenLane(t *testing.T) {
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = client.Close() })
	s := patient(t, client, redisstore.Options{})
	r := headgate.Request{Key: "k", Limit: parse(t, "1000000/h"), Cost: 1, At: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	take(t, s, r)
	for end := time.Now().Add(10 * time.Second); !s.ClosedIfForgotten(r.Key); { // its sender may not have left yet
		if time.Now().After(end) {
			t.Fatal("a lane that was forgotten is open")
		}
	}
	var stop atomic.Bool
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil && !stop.Load() {
			_, err = s.Take(context.Background(), r)
		}
		ended <- err
	}()
	for forgotten := 0; forgotten < 100 && len(ended) == 0; {
		if s.ClosedIfForgotten(r.Key) {
			forgotten++
		}
	}
	stop.Store(true)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := s.Stats(); take(t, s, headgate.Request{Key: "k", Limit: r.Limit, At: r.At}).Remaining != 1000000-got.Requests {
		t.Errorf("stats %+v", got)
	}
}
