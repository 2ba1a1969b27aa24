package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// start adds an instance.
func start(t *testing.T, s *redisstore.Store, o redisstore.FleetOptions) *redisstore.Fleet {
	t.Helper()
	f, err := redisstore.NewFleet(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// join adds an instance and waits for its first heartbeat.
func join(t *testing.T, s *redisstore.Store, o redisstore.FleetOptions) *redisstore.Fleet {
	t.Helper()
	f := start(t, s, o)
	until(t, "the first heartbeat", func() bool { return f.Err() == nil })
	return f
}

func heartbeat(t *testing.T, f *redisstore.Fleet, want int) {
	t.Helper()
	if err := f.Heartbeat(t.Context()); err != nil || f.Instances() != want || f.Err() != nil {
		t.Errorf("%d instances, error %v; want %d", f.Instances(), err, want)
	}
}

// checkExpiry fails the test unless the key expires three hours after a heartbeat.
func checkExpiry(t *testing.T, client *redis.Client) {
	t.Helper()
	ttl := client.PTTL(t.Context(), t.Name()+":fleet").Val()
	if ttl <= 2*time.Hour || ttl > 3*time.Hour {
		t.Errorf("the key expires in %s", ttl)
	}
}

// settle lets an interval pass for all, until each is counted by the others.
func settle(t *testing.T, n int, all ...*redisstore.Fleet) {
	t.Helper()
	for _, f := range all {
		f.Age(2 * time.Hour)
	}
	until(t, "all know their number", func() bool {
		known := 0
		for _, f := range all {
			if f.Heartbeat(t.Context()) == nil && f.Instances() == n {
				known++
			}
		}
		return known == len(all)
	})
}

// The number is unknown until an interval has passed, and all others have sent a heartbeat since.
// At most MinInstances are known at once.
func TestTheNumberIsUnknownUntilTheOthersCountAnInstance(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	hour := redisstore.FleetOptions{Interval: time.Hour}
	first := join(t, s, hour)
	for range 3 {
		first.Age(25 * time.Minute)
		heartbeat(t, first, 0) // another may have been here before the server lost its data
	}
	settle(t, 1, first)
	second, least := join(t, s, hour), join(t, s, redisstore.FleetOptions{
		Interval: time.Hour, MinInstances: 3,
	})
	heartbeat(t, least, 3)
	second.Age(2 * time.Hour)
	for range 3 {
		heartbeat(t, second, 0) // the first still has the whole limit
	}
	settle(t, 3, first, second, least)
	fourth := join(t, s, redisstore.FleetOptions{Interval: time.Hour, MinInstances: 3})
	heartbeat(t, fourth, 0) // the others count three
	settle(t, 4, first, second, least, fourth)
	client.FlushAll(t.Context())
	heartbeat(t, fourth, 4)
}

// The answer to its first heartbeat is lost, so the next one does not tell it to be new.
func TestTheNumberIsUnknownAfterALostAnswer(t *testing.T) {
	server := redistest.Start(t)
	direct := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer direct.Close()
	lossy := redis.NewClient(&redis.Options{Addr: redistest.LoseAnAnswer(t, server.Addr,
		"evalsha")})
	defer lossy.Close()
	hour := redisstore.FleetOptions{Interval: time.Hour}
	first := join(t, newStore(t, direct), hour)
	settle(t, 1, first)
	second := start(t, newStore(t, lossy), hour)
	until(t, "the answer is lost", func() bool {
		return direct.ZCard(t.Context(), t.Name()+":fleet").Val() == 2 && second.Err() != nil &&
			!strings.Contains(second.Err().Error(), "no heartbeat yet")
	})
	heartbeat(t, second, 0)
	settle(t, 2, first, second)
}

// An instance whose registration in a new key it did not notice goes by the time of that key.
func TestAFleetWhoseKeyIsMadeAnew(t *testing.T) {
	client := newClient(t)
	s, key := newStore(t, client), t.Name()+":fleet"
	hour := redisstore.FleetOptions{Interval: time.Hour}
	first := join(t, s, hour)
	client.PExpire(t.Context(), key, 2*time.Hour) // as if an hour had passed
	second := join(t, s, hour)
	id := client.ZRange(t.Context(), key, -1, -1).Val()[0]
	client.Del(t.Context(), key)
	heartbeat(t, first, 0)
	client.ZAdd(t.Context(), key, redis.Z{Score: 1e6, Member: id})
	heartbeat(t, second, 0)
	settle(t, 2, first, second)
}

// Heartbeats begin an interval apart, also if a server hangs.
func TestHeartbeatsAreAnIntervalApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		begun := make(hanging, 3)
		client.AddHook(begun)
		f := start(t, newStore(t, client), redisstore.FleetOptions{Interval: time.Hour})
		first := <-begun
		for i := range 2 {
			if at := (<-begun).Sub(first); at != time.Duration(i+1)*time.Hour {
				t.Errorf("heartbeat %d after %s", i+2, at)
			}
		}
		_ = f.Close()
		_ = client.Close()
	})
}

// hanging is a hook that notes when a command is sent, and waits for an answer that never comes.
type hanging chan time.Time

func (hanging) DialHook(next redis.DialHook) redis.DialHook { return next }

func (hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h hanging) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error {
		select {
		case h <- time.Now():
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// An instance counts all that have joined, and those that left for three intervals more.
func TestFleet(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	hour := redisstore.FleetOptions{Interval: time.Hour}
	first := join(t, s, hour)
	settle(t, 1, first)
	second, third := join(t, s, hour), join(t, s, hour)
	settle(t, 3, first, second, third)
	client.ScriptFlush(t.Context())
	heartbeat(t, first, 3)
	other, err := redisstore.New(client, redisstore.Options{Prefix: "other:"})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, 1, join(t, other, hour))
	checkExpiry(t, client)
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	heartbeat(t, first, 3)
	heartbeat(t, first, 3)
	fourth := join(t, s, hour)
	fourth.Age(2 * time.Hour)
	until(t, "the others count the fourth", func() bool {
		heartbeat(t, first, 3)
		heartbeat(t, second, 3)
		return fourth.Heartbeat(t.Context()) == nil && fourth.Instances() == 3 // without the third
	})
	for _, f := range []*redisstore.Fleet{first, second, fourth} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := client.Exists(t.Context(), t.Name()+":fleet").Val(); n != 0 {
		t.Error("the key is left without instances")
	}
}

// The server counts it for three intervals, and the others remember that for three more.
func TestAnInstanceThatDiesIsForgotten(t *testing.T) {
	client := newClient(t)
	dying := redis.NewClient(&redis.Options{Addr: client.Options().Addr})
	hour := redisstore.FleetOptions{Interval: time.Hour}
	dead, alive := join(t, newStore(t, dying), hour), join(t, newStore(t, client), hour)
	settle(t, 2, dead, alive)
	if err := errors.Join(dead.Heartbeat(t.Context()), dying.Close()); err != nil {
		t.Fatal(err)
	}
	key := t.Name() + ":fleet"
	for _, want := range []int{2, 2, 2, 2, 1} {
		const passed = 61 * time.Minute
		client.PExpire(t.Context(), key, client.PTTL(t.Context(), key).Val()-passed)
		alive.Pass(passed)
		heartbeat(t, alive, want)
	}
	if err := dead.Close(); err == nil {
		t.Error("it left with a client that is closed")
	}
}

// So is that of a server that loses its data again and again, for longer than three intervals.
func TestTheCountOfAServerThatKeepsLosingItsDataIsIgnored(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	hour := redisstore.FleetOptions{Interval: time.Hour}
	first, second := join(t, s, hour), join(t, s, hour)
	settle(t, 2, first, second)
	for range 5 {
		client.Del(t.Context(), t.Name()+":fleet")
		first.Pass(time.Hour)
		heartbeat(t, first, 2)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	heartbeat(t, first, 2)
	first.Pass(3 * time.Hour)
	heartbeat(t, first, 1)
}

func TestBeforeTheFirstHeartbeatTheNumberIsMinInstances(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer client.Close()
	s := newStore(t, client)
	for _, least := range []int{0, 1, 7} {
		f := start(t, s, redisstore.FleetOptions{Interval: time.Hour, MinInstances: least})
		if err := f.Heartbeat(t.Context()); err == nil || f.Instances() != least {
			t.Errorf("%d instances, at least %d, error %v", f.Instances(), least, err)
		}
	}
}

func TestAKeyThatLostItsExpiryGetsOne(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	o := redisstore.FleetOptions{Interval: time.Hour}
	first, second := join(t, s, o), join(t, s, o)
	settle(t, 2, first, second)
	client.Persist(t.Context(), t.Name()+":fleet")
	heartbeat(t, first, 2)
	checkExpiry(t, client)
	heartbeat(t, second, 2)
	if n := client.ZCard(t.Context(), t.Name()+":fleet").Val(); n != 2 {
		t.Errorf("%d registered; want 2", n)
	}
}

// The time that the key stores follows the server's clock, however many heartbeats are sent.
func TestTheTimeOfAFleetIsTheServers(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	f := join(t, s, redisstore.FleetOptions{Interval: time.Hour, MinInstances: 1})
	key := t.Name() + ":fleet"
	now := func() time.Duration {
		heartbeat(t, f, 1)
		until := client.ZRangeWithScores(t.Context(), key, 0, 0).Val()[0].Score
		return time.Duration(until)*time.Millisecond - 3*time.Hour
	}
	for range 100 {
		heartbeat(t, f, 1)
	}
	before := now()
	client.PExpire(t.Context(), key, 2*time.Hour) // as if an hour had passed
	after := now()
	if passed := after - before; before < 0 || before > time.Minute ||
		passed < time.Hour || passed > time.Hour+time.Minute {
		t.Errorf("an hour after %s it is %s", before, after)
	}
	client.PExpire(t.Context(), key, time.Hour)
	other := join(t, s, redisstore.FleetOptions{Interval: time.Minute, MinInstances: 2})
	heartbeat(t, other, 2)
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if lives := client.PTTL(t.Context(), key).Val(); lives > time.Hour || lives < 59*time.Minute {
		t.Errorf("the key lives for %s; want as long as the remaining instance counts", lives)
	}
}

func TestNewFleetRefusesInvalidOptions(t *testing.T) {
	s := newStore(t, newClient(t))
	const interval = "want 1ms to 24h, or 0 for 5s"
	for _, c := range []struct {
		store *redisstore.Store
		o     redisstore.FleetOptions
		want  string
	}{
		{nil, redisstore.FleetOptions{}, "store is nil; want one made by New or Open"},
		{s, redisstore.FleetOptions{Interval: -1}, "Interval is -1ns; " + interval},
		{s, redisstore.FleetOptions{Interval: time.Microsecond}, "Interval is 1µs; " + interval},
		{s, redisstore.FleetOptions{Interval: 25 * time.Hour}, "Interval is 25h0m0s; " + interval},
		{
			s, redisstore.FleetOptions{MinInstances: -1},
			"MinInstances is -1; want at least 1, or 0 if it is unknown",
		},
	} {
		_, err := redisstore.NewFleet(c.store, c.o)
		if !isInvalid(err) || err.Error() != "headgate: "+c.want {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

func isInvalid(err error) bool {
	_, is := errors.AsType[*headgate.InvalidError](err)
	return is
}
