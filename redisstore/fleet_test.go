package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// start adds an instance, and join one that has beaten by itself: at once, and again after Every.
func start(t *testing.T, s *redisstore.Store, o redisstore.FleetOptions) *redisstore.Fleet {
	t.Helper()
	f, err := redisstore.NewFleet(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func join(t *testing.T, s *redisstore.Store, o redisstore.FleetOptions) *redisstore.Fleet {
	t.Helper()
	f := start(t, s, o)
	until(t, "the first beat", func() bool { return f.Err() == nil })
	return f
}

func beat(t *testing.T, f *redisstore.Fleet, want int) {
	t.Helper()
	if err := f.Beat(t.Context()); err != nil || f.Instances() != want || f.Err() != nil {
		t.Errorf("%d instances, error %v; want %d", f.Instances(), err, want)
	}
}

// Each counts all who have joined, and those who left for three intervals more.
func TestFleet(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	hour := redisstore.FleetOptions{Every: time.Hour}
	first := join(t, s, hour)
	beat(t, first, 1)
	second, third := join(t, s, hour), join(t, s, hour)
	beat(t, second, 3)
	beat(t, third, 3)
	beat(t, first, 3)
	client.ScriptFlush(t.Context())
	beat(t, first, 3)
	other, err := redisstore.New(client, redisstore.Options{Prefix: "other:"})
	if err != nil {
		t.Fatal(err)
	}
	beat(t, join(t, other, hour), 1)
	if lives := client.PTTL(t.Context(), t.Name()+":fleet").Val(); lives <= 2*time.Hour || lives > 3*time.Hour {
		t.Errorf("the key lives for %s", lives)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	beat(t, first, 3)
	beat(t, first, 3)
	fourth := join(t, s, hour)
	beat(t, fourth, 3) // who never heard of the third
	for _, f := range []*redisstore.Fleet{first, second, fourth} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := client.Exists(t.Context(), t.Name()+":fleet").Val(); n != 0 {
		t.Error("nobody is left, and the key is")
	}
}

// One that dies is counted until three intervals have passed.
func TestFleetOfWhichOneDies(t *testing.T) {
	server := redistest.Start(t)
	own := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer own.Close()
	dying := redis.NewClient(&redis.Options{Addr: server.Addr})
	const every = 20 * time.Millisecond
	dead := join(t, newStore(t, dying), redisstore.FleetOptions{Every: every})
	alive := join(t, newStore(t, own), redisstore.FleetOptions{Every: every})
	until(t, "two instances", func() bool { return alive.Beat(t.Context()) == nil && alive.Instances() == 2 })
	if err := dead.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "one instance", func() bool { return alive.Beat(t.Context()) == nil && alive.Instances() == 1 })
	// The last beat of its own may have come just before the client was closed, but not before Beat.
	if took := time.Since(died); took < 5*every {
		t.Errorf("forgotten after %s", took)
	}
	if err := dead.Close(); err == nil {
		t.Error("it left by a client that is closed")
	}
}

// While the server is gone, and when it is back and knows nothing, the number that was known counts.
func TestFleetOfAServerThatIsGone(t *testing.T) {
	server := redistest.Start(t)
	_, port, _ := strings.Cut(server.Addr, ":")
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second})
	defer client.Close()
	s := newStore(t, client)
	o := redisstore.FleetOptions{Every: time.Hour, Least: 2}
	var all []*redisstore.Fleet
	for range 3 {
		f := join(t, s, o)
		if f.Instances() < 2 {
			t.Errorf("fewer than the least: %d", f.Instances())
		}
		all = append(all, f)
	}
	beat(t, all[0], 3)
	server.Stop()
	if err := all[0].Beat(t.Context()); err == nil || all[0].Err() == nil || all[0].Instances() != 3 {
		t.Errorf("%d instances, error %v", all[0].Instances(), err)
	}
	redistest.Start(t, "--port", port)
	until(t, "an answer", func() bool { return all[0].Beat(t.Context()) == nil })
	if n := all[0].Instances(); n != 3 {
		t.Errorf("a server that knows nothing says %d", n)
	}
	for _, f := range all[1:] {
		if err := f.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	beat(t, all[0], 3)
}

// A server that lost what it knew is not believed for three intervals, however often it is asked.
func TestFleetOfAServerThatForgets(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	var first *redisstore.Fleet
	for range 5 {
		first = join(t, s, redisstore.FleetOptions{Every: time.Hour})
	}
	beat(t, first, 5)
	client.FlushAll(t.Context())
	for range 3 {
		beat(t, first, 5)
	}
}

// A server that forgets again and again, for longer than three intervals, is not believed either.
func TestFleetOfAServerThatGoesOnToForget(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	o := redisstore.FleetOptions{Every: 100 * time.Millisecond}
	first, second := join(t, s, o), join(t, s, redisstore.FleetOptions{Every: time.Hour}) // which does not tell the server again
	until(t, "two instances", func() bool { return first.Beat(t.Context()) == nil && first.Instances() == 2 })
	for begun := time.Now(); time.Since(begun) < 5*o.Every; {
		client.Del(t.Context(), t.Name()+":fleet")
		beat(t, first, 2)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	until(t, "one instance", func() bool { return first.Err() == nil && first.Instances() == 1 })
}

// Until a beat was heard the number is unknown, or the least.
func TestFleetThatHasHeardNothing(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer client.Close()
	s := newStore(t, client)
	for _, least := range []int{0, 1, 7} {
		f := start(t, s, redisstore.FleetOptions{Every: time.Hour, Least: least})
		if err := f.Beat(t.Context()); err == nil || f.Instances() != least {
			t.Errorf("%d instances, at least %d, error %v", f.Instances(), least, err)
		}
	}
}

// A server that keeps its time from scripts counts all the same, and by no clock of the callers, which may
// be apart.
func TestFleetWithoutTime(t *testing.T) {
	server := redistest.Start(t)
	for user, rights := range map[string]string{"timeless": "-time", "weak": "-zadd"} {
		if _, err := server.Do(t.Context(), "ACL", "SETUSER", user, "on", ">pw", "~*", "+@all", rights); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) *redisstore.Fleet {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: user, Password: "pw"})
		t.Cleanup(func() { _ = client.Close() })
		client.AddHook(&timeless{t: t})
		return start(t, newStore(t, client), redisstore.FleetOptions{Every: time.Hour})
	}
	a, b := as("timeless"), as("timeless")
	until(t, "the first beats", func() bool { return a.Err() == nil && b.Err() == nil })
	beat(t, b, 2)
	beat(t, a, 2)
	if err := as("weak").Beat(t.Context()); err == nil || !strings.Contains(err.Error(), "ZADD") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without the right: %v", err)
	}
}

// timeless is a hook that looks for the time of this machine in what is sent.
type timeless struct {
	counter
	t *testing.T
}

func (h *timeless) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		for _, arg := range cmd.Args() {
			if n, ok := arg.(int64); ok && n > (365*24*time.Hour).Milliseconds() {
				h.t.Errorf("%v is sent, which is a time", arg)
			}
		}
		return next(ctx, cmd)
	}
}

// A fleet whose key lost its end begins again, and has one.
func TestFleetWithoutEnd(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	o := redisstore.FleetOptions{Every: time.Hour}
	first, second := join(t, s, o), join(t, s, o)
	beat(t, first, 2)
	client.Persist(t.Context(), t.Name()+":fleet")
	beat(t, first, 2)
	if lives := client.PTTL(t.Context(), t.Name()+":fleet").Val(); lives <= 2*time.Hour || lives > 3*time.Hour {
		t.Errorf("the key lives for %s", lives)
	}
	beat(t, second, 2)
	if n := client.ZCard(t.Context(), t.Name()+":fleet").Val(); n != 2 {
		t.Errorf("%d are kept; want 2", n)
	}
}

// Time passes for a fleet as for the server, however often it is asked.
func TestFleetsTime(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	f := join(t, s, redisstore.FleetOptions{Every: time.Hour})
	key := t.Name() + ":fleet"
	now := func() time.Duration {
		beat(t, f, 1)
		until := client.ZRangeWithScores(t.Context(), key, 0, 0).Val()[0].Score
		return time.Duration(until)*time.Millisecond - 3*time.Hour
	}
	for range 100 {
		beat(t, f, 1)
	}
	before := now()
	client.PExpire(t.Context(), key, 2*time.Hour) // as if an hour had passed
	if after := now(); before < 0 || before > time.Minute || after < before+time.Hour || after > before+time.Hour+time.Minute {
		t.Errorf("an hour after %s it is %s", before, after)
	}
	client.PExpire(t.Context(), key, time.Hour)
	other := join(t, s, redisstore.FleetOptions{Every: time.Minute})
	beat(t, other, 2)
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if lives := client.PTTL(t.Context(), key).Val(); lives > time.Hour || lives < 59*time.Minute {
		t.Errorf("the key lives for %s; want as long as who is left counts", lives)
	}
}

func TestFleetOptions(t *testing.T) {
	s := newStore(t, newClient(t))
	for _, o := range []redisstore.FleetOptions{{Every: -1}, {Every: time.Microsecond}, {Every: 25 * time.Hour}, {Least: -1}} {
		if _, err := redisstore.NewFleet(s, o); !isInvalid(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := redisstore.NewFleet(nil, redisstore.FleetOptions{}); !isInvalid(err) {
		t.Errorf("no store: %v", err)
	}
}

func isInvalid(err error) bool {
	_, is := errors.AsType[*headgate.InvalidError](err)
	return is
}
