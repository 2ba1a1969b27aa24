package metrics

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/observe"
)

// scrape returns the page of the metrics.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wants(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, page)
		}
	}
}

func TestDecisions(t *testing.T) {
	m := New("v1", map[string]string{"pod.name": "a", "rule": "not this"})
	r := &rules.Rule{Name: "login"}
	m.Use([]rules.Rule{*r})
	m.Decided(rules.Event{Rule: r, Key: "ip:192.0.2.1", Outcome: rules.Allowed})
	m.Decided(rules.Event{Rule: r, Key: "ip:192.0.2.1", Outcome: rules.Denied})
	m.Decided(rules.Event{Rule: r, Outcome: rules.Failed, Err: io.EOF})
	m.Called(t.Context(), observe.Call{Took: time.Millisecond, Err: io.EOF})
	m.Unmatched()
	page := scrape(t, m)
	wants(t, page,
		`headgate_decisions_total{outcome="allowed",pod_name="a",rule="login"} 1`,
		`headgate_decisions_total{outcome="denied",pod_name="a",rule="login"} 1`,
		`headgate_decisions_total{outcome="error",pod_name="a",rule="login"} 1`,
		`headgate_unmatched_requests_total{pod_name="a"} 1`,
		`headgate_decision_seconds_count{pod_name="a",result="error"} 1`,
		`headgate_build_info{pod_name="a",version="v1"} 1`)
	if strings.Contains(page, "192.0.2.1") {
		t.Error("a key is a label, and no rule asks for that")
	}
}

// The limits follow the rules, and so do the requests that wait.
func TestLimitsAndWaiting(t *testing.T) {
	m := New("", map[string]string{"limit": "not this"})
	m.Register(Waiting(func(each func(string, int64)) { each("login", 3) }))
	m.Use([]rules.Rule{{Name: "gone", Limits: []headgate.Limit{headgate.PerSecond(1)}}})
	m.Use([]rules.Rule{{Name: "login", Limits: rules.Named("login", []headgate.Limit{
		headgate.PerMinute(5).Burst(20), headgate.FixedWindow(100, 24*time.Hour),
	})}})
	page := scrape(t, m)
	wants(t, page, `headgate_limit{limit="5/m burst 20",rule="login"} 20`,
		`headgate_limit{limit="100/d fixed-window",rule="login"} 100`,
		`headgate_rule_waiting{rule="login"} 3`)
	if strings.Contains(page, "gone") {
		t.Error("a limit outlives its rule")
	}
}

// Labels by key are bounded, and end with the rule that asked for them.
func TestKeysAreBounded(t *testing.T) {
	m := New("", nil)
	r := rules.Rule{Name: "login", LabelKeys: true}
	m.Use([]rules.Rule{r})
	for range 2 {
		for i := range maxKeys + 500 {
			m.Decided(rules.Event{Rule: &r, Key: fmt.Sprint("ip:", i), Outcome: rules.Denied})
		}
	}
	page := scrape(t, m)
	if n := strings.Count(page, "headgate_key_decisions_total{"); n != maxKeys+1 {
		t.Errorf("%d series, want %d", n, maxKeys+1)
	}
	wants(t, page, `headgate_key_decisions_total{key="ip:7",outcome="denied",rule="login"} 2`,
		`headgate_key_decisions_total{key="other",outcome="denied",rule="login"} 1000`)
	m.Use(nil)
	for range 2 {
		if page := scrape(t, m); strings.Contains(page, "decisions_total{") {
			t.Errorf("the series outlive the rule:\n%s", page)
		}
		m.Decided(rules.Event{Rule: &r, Key: "ip:7", Outcome: rules.Denied}) // in flight until now
	}
}

// Programs choose the keys of the API, and no choice of bytes is more than a label.
func TestKeysOfAnyBytes(t *testing.T) {
	m := New("", nil)
	r := rules.Rule{Name: "login", LabelKeys: true}
	m.Use([]rules.Rule{r})
	for b := range 256 {
		m.Decided(rules.Event{Rule: &r, Key: "k" + string([]byte{byte(b)}), Outcome: rules.Denied})
	}
	wants(t, scrape(t, m),
		`headgate_key_decisions_total{key="kz",outcome="denied",rule="login"} 1`,
		`headgate_key_decisions_total{key="k�",outcome="denied",rule="login"} 128`)
}

func TestConfig(t *testing.T) {
	m := New("", nil)
	m.Loaded("one", time.Unix(7, 0), nil)
	m.Loaded("two", time.Unix(8, 0), nil)
	m.Loaded("", time.Time{}, errors.New("bad"))
	wants(t, scrape(t, m), `headgate_config_info{hash="two"} 1`, "headgate_config_last_load_success 0",
		"headgate_config_last_load_timestamp_seconds 8",
		`headgate_config_loads_total{result="error"} 1`, `headgate_config_loads_total{result="success"} 2`)
}

// Envoy's counters have the names that dashboards of envoyproxy/ratelimit use.
func TestEnvoy(t *testing.T) {
	m := New("", nil)
	e := NewEnvoy(m, true)
	perHour := &envoy.RateLimit{Unit: "hour", RequestsPerUnit: 1}
	config, err := envoy.NewConfig([]*envoy.Domain{{Name: "edge", Descriptors: []envoy.Spec{
		{Key: "a", Descriptors: []envoy.Spec{{Key: "b", Descriptors: []envoy.Spec{
			{Key: "c", RateLimit: perHour}, {Key: "d", RateLimit: perHour},
		}}}},
	}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	l := envoy.New(headgate.NewMemorySize(100), nil, envoy.Options{}, &e.Statistics)
	l.Use(config)
	for _, last := range []string{"c", "d", "c"} {
		entries := []envoy.Entry{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}, {Key: last, Value: "3"}}
		req := envoy.Request{Domain: "edge", Descriptors: []envoy.Descriptor{{Entries: entries}}}
		if err := l.Decide(t.Context(), &req, new(envoy.Response)); err != nil {
			t.Fatal(err)
		}
		e.Served(2 * time.Millisecond)
	}
	// Paths below the second level are one series.
	wants(t, scrape(t, m),
		`ratelimit_service_rate_limit_total_hits{domain="edge",key1="a",key2="b"} 3`,
		`ratelimit_service_rate_limit_over_limit{domain="edge",key1="a",key2="b"} 1`,
		`ratelimit_service_response_time_seconds_sum{grpc_method="ShouldRateLimit"} 6`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 3`,
		`ratelimit_service_should_rate_limit_error{err_type="redis_error"} 0`)
	if text := scrape(t, m); strings.Contains(text, "over_limit_with_local_cache") {
		t.Error("a counter of the local cache is exported, which is not in use")
	}
	var b strings.Builder
	e.WriteStats(&b)
	for _, line := range []string{
		"ratelimit.service.rate_limit.edge.a.b.c.total_hits: 2\n",
		"ratelimit.localcache.hitCount: 0\n", "ratelimit_server.ShouldRateLimit.total_requests: 3\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no line %q in\n%s", line, &b)
		}
	}
}
