package chaos

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

const slots = 16384

// clusterFaults befall a Redis Cluster.
func clusterFaults() []fault {
	return []fault{
		{name: "cluster, slots move", build: reshard, quiet: true},
		{name: "cluster, a primary killed", build: clusterKilled, bound: "a fresh limit for keys of that primary", sees: []string{""}}, // any error
	}
}

// clusterURL is for the user with the least rights, whom it makes.
func clusterURL(t *testing.T, c *redistest.Cluster) string {
	t.Helper()
	for _, s := range c.Servers {
		makeUser(t, s, true)
	}
	return "redis+cluster://" + user + ":" + password + "@" + strings.Join(c.Addrs, ",")
}

// slotOf asks for the slot of a key.
func slotOf(t *testing.T, c *redistest.Cluster, key string) int {
	t.Helper()
	slot, err := strconv.Atoi(do(t, c.Servers[1], "CLUSTER", "KEYSLOT", key))
	if err != nil {
		t.Error(err)
	}
	return slot
}

// owner is the server that has a slot at first.
func owner(slot int) int {
	for i := range 3 {
		if slot < slots*(i+1)/3 {
			return i
		}
	}
	panic("no such slot")
}

// reshard moves the slots of the keys that are asked for often to one server, then all
// to the next, and so on.
func reshard(t *testing.T) *scene {
	c := redistest.StartCluster(t)
	owners := make(map[int]int)
	for _, key := range wanted() {
		slot := slotOf(t, c, key)
		owners[slot] = owner(slot)
	}
	return &scene{
		open: openURL(t, clusterURL(t, c)),
		inject: func(over <-chan struct{}) {
			target := 0
			every(over, 3*time.Second, func() { // by then all servers have heard of it
				moveAll(over, t, c, owners, target)
				target = (target + 1) % len(c.Servers)
			})
		},
		heal: func() {},
		felt: func() error {
			return errors.Join(answers(t, "MOVED", c.Servers...)(), answers(t, "ASK", c.Servers...)())
		},
	}
}

// moveAll moves slots to one server, until over is closed; none is left half moved.
func moveAll(over <-chan struct{}, t *testing.T, c *redistest.Cluster, owners map[int]int, target int) {
	t.Helper()
	bounded, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for slot, from := range owners {
		if from == target || !wait(over, 0) {
			continue
		}
		if err := c.Move(bounded, slot, from, target, func() { wait(nil, 30*time.Millisecond) }); err != nil {
			t.Error(err)
			return
		}
		owners[slot] = target
	}
}

// clusterKilled ends the first primary. Its replica takes its place.
func clusterKilled(t *testing.T) *scene {
	c := redistest.StartReplicatedCluster(t)
	lost := make(map[string]bool)
	for _, key := range wanted() {
		lost[key] = owner(slotOf(t, c, key)) == 0
	}
	return &scene{
		open:   openURL(t, clusterURL(t, c)),
		inject: func(<-chan struct{}) { c.Servers[0].Stop() },
		begun: func(a *account) int64 {
			if known, ok := lost[a.key]; ok && !known {
				return 0
			}
			return 1
		},
		felt: promotion(t, c.Servers[3]),
	}
}
