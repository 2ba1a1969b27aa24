package serve

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redistest"
)

// A response that costs nothing gives its token back, and another instance grants it at once.
func TestSettledRulesAreNotCached(t *testing.T) {
	redis := redistest.Start(t)
	text := "store: redis://" + redis.Addr + "\nrules:\n" +
		"  - {name: tokens, key: ip, limits: [1/h, 9/d], cost: response:X-Tokens}\n" +
		"  - {name: plain, key: ip, match: {path: /plain}, limits: 1/h}\n"
	a, b := newTestServer(t, text, new(buffer)), newTestServer(t, text, new(buffer))
	client := netip.MustParseAddr("192.0.2.1")
	begin := func(s *server) (rules.Verdict, *rules.Admission) {
		v, w, err := s.engine.Match(&rules.Request{Path: "/", Client: client}).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v, w
	}
	take := func(body string) (answer struct{ Allowed bool }) {
		b.send(t, http.MethodPost, "/v1/take", body, &answer)
		return answer
	}
	const tokens = `{"rule": "tokens", "key": "ip:192.0.2.1"}` //nolint:gosec // no credential
	for range 3 {
		v, w := begin(a)
		if !v.Allowed {
			t.Fatalf("%+v", v)
		}
		if v, _ := begin(b); v.Allowed || take(tokens).Allowed {
			t.Fatalf("both tokens are granted: %+v", v)
		}
		w.Settle(t.Context(), http.Header{"X-Tokens": {"0"}})
		w.End(t.Context())
	}
	if !take(tokens).Allowed {
		t.Error("the token that was given back is denied")
	}
	// Other rules keep the cache: a denial goes on when the state is gone.
	const plain = `{"rule": "plain", "key": "ip:192.0.2.1"}`
	take(plain)
	if take(plain).Allowed {
		t.Fatal("two of one an hour")
	}
	if _, err := redis.Do(t.Context(), "FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	if take(plain).Allowed {
		t.Error("the denial of a plain rule is not cached")
	}
}

// While the rules are loaded again, those whose cost is in the response pass the cache.
func TestSettledRulesWhileLoading(t *testing.T) {
	later := &cacheBypass{}
	list := []rules.Rule{{Name: "tokens", Cost: rules.Cost{ResponseHeader: "X-Tokens"}}}
	later.use(list)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 1_000_000 {
			later.use(list)
		}
	}()
	for {
		for range 1000 {
			if later.rules.Load() == nil {
				t.Fatal("there are no such rules for a moment")
			}
		}
		select {
		case <-ended:
			return
		default:
		}
	}
}
