package answer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/internal/problem"
)

type failing struct{ headgate.Store }

func (failing) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, errors.New("down")
}

// verdict is the last of n decisions about one key.
func verdict(t *testing.T, store headgate.Store, n int, cost int64) rules.Verdict {
	t.Helper()
	set, err := rules.NewSet([]rules.Rule{{
		Name: "r", Limits: []headgate.Limit{headgate.PerHour(1)}, Cost: rules.Cost{Fixed: cost},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := rules.New(store, nil, rules.Options{})
	e.Use(set)
	var v rules.Verdict
	for range n {
		if v, err = e.Match(&rules.Request{Path: "/"}).Decide(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func TestDeny(t *testing.T) {
	closed, err := fallback.New(failing{}, fallback.Options{Mode: fallback.Closed})
	if err != nil {
		t.Fatal(err)
	}
	share, err := fallback.New(failing{}, fallback.Options{
		Mode: fallback.Local, Instances: func() int { return 1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		v                   rules.Verdict
		retry, remain, text string
		violated            int
		unavailable         bool
	}{
		{
			verdict(t, headgate.NewMemory(), 2, 1),
			"3600", "0", "The rule r is exceeded. Retry in 3600 s.", 1, false,
		},
		{
			verdict(t, headgate.NewMemory(), 1, 2),
			"", "1", "The rule r can never grant a request of this cost.", 1, false,
		},
		{
			verdict(t, share, 2, 1),
			"3600", "0", "The rule r grants only a share: the store is unavailable. Retry in 3600 s.", 0, false,
		},
		{
			verdict(t, closed, 1, 1),
			"1", "", "the store is unavailable: the limits cannot be checked", 0, true,
		},
		{
			rules.Verdict{Rule: "r", Reason: rules.Permits, RetryAfter: time.Second},
			"1", "", "The rule r allows no more concurrent requests.", 1, false,
		},
		{
			rules.Verdict{
				Rule: "r", Reason: rules.Ban, RetryAfter: 1500 * time.Millisecond, GiveUp: true,
			},
			"2", "", "The rule r bans this client.", 0, false,
		},
		{
			rules.Verdict{Rule: "r", Reason: rules.Ban, RetryAfter: headgate.Never},
			"", "", "The rule r bans this client.", 0, false,
		},
	} {
		for _, status := range []int{403, 429} {
			want := status
			if c.unavailable {
				want = 503
			}
			w := httptest.NewRecorder()
			Deny(w, status, &c.v)
			var p problem.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if w.Code != want || p.Status != want || p.Detail != c.text || p.Title == "" ||
				len(p.Violated) != c.violated || w.Header().Get("Retry-After") != c.retry ||
				w.Header().Get("X-Ratelimit-Remaining") != c.remain {
				t.Errorf("%s: %d %+v %v", c.text, w.Code, p, w.Header())
			}
			giveUp := w.Header().Get("X-Should-Retry")
			if shown := p.Denial; giveUp != "" && !c.v.GiveUp || c.v.GiveUp && giveUp != "false" ||
				!c.unavailable && (shown == nil || shown.Message != c.text ||
					shown.Type != "rate_limit_error" || shown.Code != "rate_limit_exceeded") {
				t.Errorf("%s: %+v, X-Should-Retry: %s", c.text, shown, giveUp)
			}
		}
	}
}

func TestSpell(t *testing.T) {
	limits := []headgate.Decision{{Limit: headgate.PerHour(1), RetryAfter: time.Second}}
	h := http.Header{"Cache-Control": {"no-store"}, "Content-Type": {"application/json"}}
	allocations := testing.AllocsPerRun(100, func() {
		for _, s := range spellings {
			h[s[0]] = h["Cache-Control"]
		}
		Spell(h)
	})
	if allocations > 0 || len(h) != 2+len(spellings) {
		t.Errorf("%v allocations: %v", allocations, h)
	}
	SetFields(h, &rules.Verdict{Reason: rules.Limits, Decisions: limits})
	if Spell(h); len(h[spellings[0][1]]) != 1 || h.Get("Retry-After") != "1" || len(h) != 3+len(spellings) {
		t.Errorf("%v", h)
	}
}

func TestUnavailable(t *testing.T) {
	w := httptest.NewRecorder()
	Unavailable(w)
	if w.Code != 503 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
