package rules

import (
	"net/http"
	"testing"

	"github.com/headgate/headgate"
)

func byClass(class string) *Request {
	q := &Request{Path: "/", Header: http.Header{}}
	if class != "" {
		q.Header.Set("X-Class", class)
	}
	return q
}

var classes = Headroom{Header: "X-Class", Classes: []Class{{"batch", 50}, {"interactive", 20}}}

// Each class gets what its headroom leaves of each limit. Another class, or none, gets all.
func TestHeadroomOfClasses(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "api", Headroom: classes, Limits: []headgate.Limit{
		headgate.PerHour(9), headgate.FixedWindow(1000, 24*60*60e9),
	}})
	for _, step := range []struct {
		class   string
		granted int64
	}{
		{"batch", 4}, // of 9 it leaves 5
		{"Batch", 0}, // the same class
		{"interactive", 3},
		{" batch ", 0},
		{"", 1},
		{"unknown", 1},
		{"critical", 0},
	} {
		granted := int64(0)
		for range 4 {
			v := decide(t, e, byClass(step.class))
			if v.Allowed {
				granted++
			} else if v.Rule != "api" || v.Reason != Limits || v.RetryAfter <= 0 ||
				v.RetryAfter == headgate.Never {
				t.Errorf("%q is denied: %+v", step.class, v)
			}
			if step.class == "" || step.class == "unknown" {
				break
			}
		}
		if granted != step.granted {
			t.Errorf("%q: %d granted; want %d", step.class, granted, step.granted)
		}
	}
	if n := left(t, e, "api", "all"); n != 0 {
		t.Errorf("%d remain; want none", n)
	}
}

// A class leaves its part of the permits as well, and of an override's limits; a rule in shadow
// denies nothing.
func TestHeadroomOfPermitsOverridesAndShadow(t *testing.T) {
	var seen recorder
	e := newEngine(t, Options{Observe: seen.observe},
		Rule{Name: "work", Permits: 3, Headroom: classes})
	if v, _ := begin(t, e, byClass("batch")); !v.Allowed { // of 3 it leaves 2
		t.Errorf("batch: %+v", v)
	}
	if v, _ := begin(t, e, byClass("batch")); v.Allowed || v.Reason != Permits {
		t.Errorf("batch again: %+v", v)
	}
	for range 2 {
		if v, _ := begin(t, e, byClass("")); !v.Allowed {
			t.Errorf("no class: %+v", v)
		}
	}
	list := overrides{{Rule: "api", Key: "all", Limits: per(2)}}
	e = newEngine(t, Options{Overrides: list, Observe: seen.observe},
		Rule{Name: "api", Limits: per(100), Headroom: classes},
		Rule{Name: "trial", Limits: per(2), Headroom: classes, Mode: Shadow})
	seen.since()
	for range 2 {
		decide(t, e, byClass("batch"))
	}
	if got := seen.since(); got != "api allowed, trial allowed, api denied, trial shadow_denied" {
		t.Error(got)
	}
}

func TestHeadroomIsChecked(t *testing.T) {
	for want, h := range map[string]Headroom{
		`header "" is not a header field; want one such as X-Class`:    {Classes: classes.Classes},
		`header "a b" is not a header field; want one such as X-Class`: {Header: "a b", Classes: classes.Classes},
		"has no class; want at least one, such as batch: 50%":          {Header: "X-Class"},
		"has 17 classes; want at most 16":                              {Header: "X-Class", Classes: make([]Class, 17)},
		"class a has 100%; want 0% to 99%":                             {Header: "X-Class", Classes: []Class{{"a", 100}}},
		`class " a" has a space around it, or no text; want a name`:    {Header: "X-Class", Classes: []Class{{" a", 1}}},
		"class A is given twice; upper and lower case are the same":    {Header: "X-Class", Classes: []Class{{"a", 1}, {"A", 2}}},
		"": {Header: "X-Class", Classes: []Class{{"a", 0}, {"b", 99}}},
	} {
		got := ""
		if err := h.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v:\n got  %s\n want %s", h, got, want)
		}
	}
	for text, want := range map[string]int64{"0%": 0, "99%": 99, "7%": 7, "100%": -1, "5": -1, "-1%": -1, "1.5%": -1, "%": -1, "+5%": -1} {
		if n, err := ParsePercent(text); err == nil && n != want || err != nil && want >= 0 {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	if n := partOf(99, 1<<53-1); n != 8917127262193582 {
		t.Errorf("99%% of 2^53 - 1: %d", n)
	}
}
