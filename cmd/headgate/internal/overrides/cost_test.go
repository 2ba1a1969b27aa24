package overrides

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redistest"
)

// putBans puts n bans, from the given one on.
func putBans(tb testing.TB, table *Table, from, n int) {
	tb.Helper()
	for i := range n {
		o := rules.Override{Rule: "login", Key: fmt.Sprint("ip:", from+i), Ban: true, Note: "abuse"}
		if err := table.Put(tb.Context(), o); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestTheThirdThousandInMemory: a PUT costs the same however many overrides there are.
func TestTheThirdThousandInMemory(t *testing.T) {
	table := NewMemory()
	var costs [3]uint64
	for i := range costs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		putBans(t, table, 1000*i, 1000)
		runtime.ReadMemStats(&after)
		costs[i] = after.TotalAlloc - before.TotalAlloc
	}
	if costs[2] > 2*costs[0] {
		t.Errorf("the first, second and third thousand allocated %d bytes", costs)
	}
}

// TestTheThirdThousandInRedis: neither the instance that puts nor another reads more.
func TestTheThirdThousandInRedis(t *testing.T) {
	server := redistest.Start(t)
	url := "redis://" + server.Addr
	table, other := instance(t, open(t, url), nil), instance(t, open(t, url), nil)
	var costs [3]int
	for i := range costs {
		before := sent(t, server)
		for j := range 10 {
			putBans(t, table, 1000*i+100*j, 100)
			if err := other.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		costs[i] = sent(t, server) - before
	}
	if costs[2] > 2*costs[0] {
		t.Errorf("for the first, second and third thousand, Redis sent %d bytes", costs)
	}
	for _, table := range []*Table{table, other} {
		if _, list := table.List(); len(list) != 3000 {
			t.Errorf("an instance has %d overrides, want 3000", len(list))
		}
	}
}

// sent returns how many bytes server has sent.
func sent(t *testing.T, server *redistest.Server) int {
	t.Helper()
	info, err := server.Do(t.Context(), "INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(info, "total_net_output_bytes:")
	text, _, _ = strings.Cut(text, "\r\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
