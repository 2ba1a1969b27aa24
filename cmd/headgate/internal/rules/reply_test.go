package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// A jitter makes waits longer, by at most its part, and never shorter; it changes no ban, and not
// what the decisions of limits say.
func TestJitter(t *testing.T) {
	jitter := Reply{Jitter: 20}
	e := newEngine(t, Options{Overrides: overrides{{Rule: "r", Key: "banned", Ban: true}}},
		Rule{Name: "r", Key: []KeyPart{{Source: "header", Name: "K"}}, Limits: per(1), Reply: jitter, AnyKey: true},
		Rule{Name: "p", Permits: 1, Reply: jitter, Match: Match{Path: "/p"}},
	)
	seen := map[time.Duration]bool{}
	for range 100 {
		v := decide(t, e, &Request{Path: "/"})
		if v.Allowed {
			continue
		}
		exact := headgate.Strictest(v.Decisions).RetryAfter
		if more := v.RetryAfter - exact; more < 0 || more > exact/5 || more%time.Second != 0 {
			t.Fatalf("%v instead of %v", v.RetryAfter, exact)
		}
		seen[(v.RetryAfter - exact).Truncate(time.Minute)] = true
		answers, _, err := e.Answer(t.Context(), Order{}, Ask{Rule: "r", Key: "header:", Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		a := answers[0]
		exact = a.Decisions[0].RetryAfter
		if more := a.Strictest.RetryAfter - exact; more < 0 || more > exact/5 {
			t.Fatalf("a program: %v instead of %v", a.Strictest.RetryAfter, exact)
		}
	}
	if len(seen) < 5 {
		t.Errorf("99 denials have %d waits", len(seen))
	}
	answers, _, err := e.Answer(t.Context(), Order{}, Ask{Rule: "r", Key: "banned", Cost: 1})
	if err != nil || answers[0].Strictest.RetryAfter != headgate.Never {
		t.Errorf("a ban: %+v, %v", answers, err)
	}
	for wait, want := range map[time.Duration]time.Duration{
		headgate.Never: headgate.Never, 0: 0, 4 * time.Second: 4 * time.Second,
	} {
		if got := jitter.later(wait, time.Second); got != want {
			t.Errorf("%v becomes %v", wait, got)
		}
	}
}

// Each rule hides the fields of its own limits.
func TestHides(t *testing.T) {
	e := newEngine(t, Options{},
		Rule{Name: "shown", Limits: per(9)},
		Rule{Name: "half", Limits: append(per(9), headgate.PerDay(9)), Reply: Reply{Hides: httplimit.XRateLimit}},
		Rule{Name: "hidden", Limits: per(2), Reply: Reply{Hides: httplimit.AllFields}},
	)
	for i := range 3 {
		v := decide(t, e, &Request{Path: "/"})
		draft, old := v.Shown(httplimit.Draft10), v.Shown(httplimit.XRateLimit)
		if len(v.Decisions) != 4 || len(draft) != 3 || len(old) != 1 || draft[1].Limit.Name() != "half" {
			t.Errorf("of %d, RateLimit has %d and X-RateLimit %d", len(v.Decisions), len(draft), len(old))
		}
		if hidden := v.Reply.Hides == httplimit.AllFields; hidden != (i == 2) {
			t.Errorf("request %d: %+v", i, v)
		}
	}
}

func TestDenial(t *testing.T) {
	for _, c := range []struct{ contentType, body, want string }{
		{"application/json", `{"error": {"message": "{detail}", "in": {retry_after}, "by": {violated_policies}}}`, ""},
		{"text/html", "<p>{title} ({status}): {rule} {type}", ""},
		{"text/plain", "{who}", "body has {who}; want {type}, "},
		{"application/json", "later", "body is not JSON, but content_type is application/json; want "},
		{"application/problem+json", `{"message": {detail}}`, "body is not JSON"},
		{"application/json", `[{detail}]`, "body is not JSON"},
		{"application/json", `{"in": {retry_after}0}`, "body is not JSON"},
		{"application/json", `{"by": "{violated_policies}"}`, "body is not JSON"},
		{"text/plain\r\nX-Evil: 1", "later", `content_type is "text/plain\r\nX-Evil: 1"; want a media type`},
	} {
		err := (&Denial{Body: c.body, ContentType: c.contentType}).Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.body, err)
		}
	}
	d := Denial{Body: "{rule} {retry_after} {violated_policies} {status}{}"}
	values := DenialValues{Rule: "r", RetryAfter: "null", Violated: []string{"r.2"}, Status: 429}
	if got := d.Fill(values); got != `r null ["r.2"] 429{}` {
		t.Error(got)
	}
}
