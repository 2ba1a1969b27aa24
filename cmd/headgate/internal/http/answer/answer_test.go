package answer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/httplimit"
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

// A rule says what clients are told: which fields, a later time to come back, and which body.
func TestReply(t *testing.T) {
	limits := []headgate.Decision{
		{Limit: headgate.PerHour(1).Named("r"), RetryAfter: 2 * time.Second}, {Limit: headgate.PerHour(9).Named("s"), Remaining: 8},
	}
	body := &rules.Denial{
		Body:        `{"message": "{detail}", "in": {retry_after}, "by": {violated_policies}, "of": "{title} {status} {type}"}`,
		ContentType: "application/json",
	}
	const quota = `"of": "Request cannot be satisfied as assigned quota has been exceeded 429 https://iana.org/assignments/http-problem-types#quota-exceeded"}`
	for name, c := range map[string]struct {
		v                          rules.Verdict
		draft, old, retry, content string
		text                       string // of the body; empty: a problem document
	}{
		"all": {
			rules.Verdict{RetryAfter: 3 * time.Second, Reply: rules.Reply{Denial: body}},
			`"r";r=0;t=2`, "0", "3", "application/json",
			`{"message": "The rule r is exceeded. Retry in 3 s.", "in": 3, "by": ["r"], ` + quota,
		},
		"none": {
			rules.Verdict{
				RetryAfter: 2 * time.Second, Hides: []httplimit.Fields{httplimit.AllFields, httplimit.AllFields},
				Reply: rules.Reply{Hides: httplimit.AllFields},
			}, "", "", "", "application/problem+json", "",
		},
		"one rule": {
			rules.Verdict{
				RetryAfter: headgate.Never, Hides: []httplimit.Fields{httplimit.AllFields, httplimit.XRateLimit},
				Reply: rules.Reply{Hides: httplimit.AllFields &^ httplimit.RetryAfter, Denial: body},
			},
			`"s";r=8;t=0`, "", "", "application/json",
			`{"message": "The rule r can never grant a request of this cost.", "in": null, "by": ["r"], ` + quota,
		},
		"ban": {
			rules.Verdict{Reason: rules.Ban, RetryAfter: time.Second, Reply: rules.Reply{Denial: body}},
			"", "", "1", "application/json",
			`{"message": "The rule r bans this client.", "in": 1, "by": [], "of": "Too Many Requests 429 about:blank"}`,
		},
	} {
		if c.v.Rule = "r"; c.v.Reason == rules.None {
			c.v.Reason, c.v.Decisions = rules.Limits, limits
		}
		w := httptest.NewRecorder()
		Deny(w, 429, &c.v)
		h := w.Header()
		if h.Get("Ratelimit") != c.draft || h.Get("X-Ratelimit-Remaining") != c.old ||
			h.Get("Retry-After") != c.retry || h.Get("Content-Type") != c.content {
			t.Errorf("%s: %v", name, h)
		}
		if got := w.Body.String(); c.text != "" && got != c.text || c.text == "" && strings.Contains(got, "Retry in") {
			t.Errorf("%s: %s", name, got)
		}
		w = httptest.NewRecorder()
		DenyCall(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), &c.v)
		if w.Header().Get("Retry-After") != c.retry || w.Body.Len() > 0 {
			t.Errorf("%s: a call: %v", name, w.Header())
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
	SetFields(h, &rules.Verdict{Reason: rules.Limits, Decisions: limits, RetryAfter: time.Second})
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
