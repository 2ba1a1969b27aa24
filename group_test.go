package headgate

import (
	"testing"
	"time"
)

// A request that a user, a tenant and everybody's limit share is granted by all or none, and
// told who refused and for how long.
func TestAllowAll(t *testing.T) {
	m := NewMemorySize(16)
	ask := func(user string, cost int64) (Decision, []Decision) {
		ds, err := AllowAll(t.Context(), m,
			Request{Key: "user:" + user, Limit: must(ParseLimit("user=2/s")), Cost: cost,
				At: midnight},
			Request{Key: "tenant:a", Limit: must(ParseLimit("tenant=5/m fixed-window")),
				Cost: cost, At: midnight},
			Request{Key: "all", Limit: must(ParseLimit("all=100/s")), Cost: 10 * cost,
				At: midnight})
		if err != nil {
			t.Fatal(err)
		}
		return Strictest(ds), ds
	}
	for _, c := range []struct {
		user    string
		cost    int64
		allowed bool
		decided int
		name    string
		retry   time.Duration
	}{
		{"ann", 2, true, 0, "user", 0},
		{"ann", 1, false, 0, "user", 500 * time.Millisecond},
		{"bob", 2, true, 0, "user", 0},
		{"cat", 2, false, 1, "tenant", time.Minute},
		{"ann", 2, false, 1, "tenant", time.Minute},
		// the user's limit would let it go after a second
		{"cat", 1, true, 1, "tenant", 0},
		{"cat", 3, false, 0, "user", Never},
	} {
		d, ds := ask(c.user, c.cost)
		if d.Allowed() != c.allowed || ds[c.decided] != d || len(ds) != 3 ||
			d.Limit.Name() != c.name || d.RetryAfter != c.retry {
			t.Errorf("%s, %d: %+v of %+v; want %+v", c.user, c.cost, d, ds, c)
		}
	}
	if ds, err := AllowAll(t.Context(), m); len(ds) > 0 || err != nil ||
		Strictest(ds) != unlimited {
		t.Errorf("nothing asked: %+v, %v", ds, err)
	}
	if _, err := AllowAll(t.Context(), m, Request{Key: "k"}); err == nil {
		t.Error("a request without a limit was decided")
	}
}
