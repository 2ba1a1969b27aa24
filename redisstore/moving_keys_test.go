package redisstore_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// Two limits of a key that has begun to move cannot be decided together. Such calls fail in the end
// without a charge, or are answered if the key stays, and calls for other keys do not wait for
// them.
func TestMovingKeys(t *testing.T) {
	cluster := sharedCluster(t)
	client := newCluster(t)
	s, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	limit, sibling := parse(t, "1/10h burst 500"), parse(t, "b=1/10h burst 500")
	// of slot 12182, on the third server
	take(t, s, headgate.Request{Key: "foo", Limit: limit, Cost: 1})
	do := func(server int, command ...string) string {
		t.Helper()
		reply, err := cluster.Servers[server].Do(t.Context(), command...)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	move := func(server int, how ...string) {
		t.Helper()
		do(server, append([]string{"CLUSTER", "SETSLOT", "12182"}, how...)...)
	}
	both := []headgate.Request{{Key: "foo", Limit: limit, Cost: 1},
		{Key: "foo", Limit: sibling, Cost: 1}}
	together := func() <-chan answer { return ask(t.Context(), s, both...) }

	move(0, "IMPORTING", do(2, "CLUSTER", "MYID")) // Redis 6.2 sends all such requests there
	move(2, "MIGRATING", do(0, "CLUSTER", "MYID"))
	moving := []<-chan answer{together(), together()}
	for i := range 50 {
		if a := <-ask(t.Context(), s,
			headgate.Request{Key: strconv.Itoa(i), Limit: limit, Cost: 1}); a.err != nil {
			t.Errorf("another key: %v", a.err)
		}
	}
	for i := range moving {
		if a := <-moving[i]; a.err == nil ||
			!strings.HasPrefix(a.err.Error(), "redisstore: TRYAGAIN ") {
			t.Errorf("both limits of a key on its way: %+v", a)
		}
	}
	moving = []<-chan answer{together(), together()}
	move(2, "STABLE")
	move(0, "STABLE")
	for i := range moving {
		if a := <-moving[i]; a.err != nil {
			t.Errorf("both limits of a key that stays: %v", a.err)
		}
	}
	if d := take(t, s, headgate.Request{Key: "foo", Limit: limit}); d.Remaining != 497 {
		t.Errorf("%d are left of 500 after three", d.Remaining)
	}
	if n := s.Stats().Requests; n <= 1+50+2*4+1 {
		t.Errorf("%d requests counted; want more than 60, because some are sent again", n)
	}
}
