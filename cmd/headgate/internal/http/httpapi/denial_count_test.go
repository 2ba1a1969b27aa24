package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// A rule that counts denials is charged if another one of a take-all is denied, and then blocks.
func TestTakeAllCountsDenials(t *testing.T) { synctest.Test(t, testTakeAllCountsDenials) }

func testTakeAllCountsDenials(t *testing.T) {
	f := build(t, nil, Settings{})
	left := func(rule string) string {
		t.Helper()
		body := f.send(http.MethodPost, "/v1/peek", fmt.Sprintf(`{"rule": %q, "key": "a"}`, rule)).text
		_, rest, _ := strings.Cut(body, `"remaining":`)
		remaining, _, _ := strings.Cut(rest, ",")
		return remaining
	}
	const all = `{"requests": [{"rule": "guard", "key": "a"}, {"rule": "watch", "key": "a"},` +
		`{"rule": "login", "key": "a"}, {"rule": "tokens", "key": "a", "cost": %d}]}`
	for i, c := range []struct {
		cost    int
		allowed bool
		left    string // of guard, watch, login and tokens
	}{
		{1, true, "3 9 4 999"},
		{1, true, "3 9 3 998"},
		{999, false, "2 8 3 998"},
		{1, true, "2 8 2 997"},
		{999, false, "1 7 2 997"},
		{999, false, "0 6 2 997"},
		{999, false, "0 6 2 997"}, // blocked: nothing is charged
		{1, false, "0 6 2 997"},
	} {
		body := f.send(http.MethodPost, "/v1/take-all", fmt.Sprintf(all, c.cost)).text
		if strings.HasPrefix(body, `{"allowed":true`) != c.allowed {
			t.Errorf("request %d: %s", i, body)
		}
		got := strings.Join([]string{left("guard"), left("watch"), left("login"), left("tokens")}, " ")
		if got != c.left {
			t.Errorf("request %d: %s remain, want %s", i, got, c.left)
		}
	}
	const alone = `{"rule": "guard", "key": "a"}`
	if body := f.send(http.MethodPost, "/v1/take", alone).text; !strings.Contains(body, `"allowed":false`) {
		t.Error(body)
	}
	body := f.send(http.MethodPost, "/v1/take-all", `{"requests": [`+alone+`]}`).text
	if !strings.HasPrefix(body, `{"allowed":false`) {
		t.Error(body)
	}
}

// Alone, such a rule says whether it blocks, and charges nothing. It cannot be reserved.
func TestDenialsAlone(t *testing.T) { synctest.Test(t, testDenialsAlone) }

func testDenialsAlone(t *testing.T) {
	f := build(t, nil, Settings{})
	for range 5 {
		body := f.send(http.MethodPost, "/v1/take", `{"rule": "guard", "key": "a", "cost": 2}`).text
		if !strings.HasPrefix(body, `{"allowed":true`) || !strings.Contains(body, `"remaining":3`) {
			t.Error(body)
		}
	}
	r := f.send(http.MethodPost, "/v1/reserve", `{"rule": "guard", "key": "a"}`)
	if r.StatusCode != http.StatusBadRequest || !strings.Contains(r.text, "which counts denials") {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
}
