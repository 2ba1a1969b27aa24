package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/actions"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
	"github.com/headgate/headgate/internal/redistest"
)

// newActing makes a console in which modes are switched.
func newActing(t *testing.T) *console {
	t.Helper()
	c := newConsole(t, nil, "other", secret)
	c.options.Overrides.Follow(c.options.Engine.Switch, func(overrides.Reset) {})
	return c
}

// get sends a GET without a token, and reads the answer into v.
func (c *console) read(path string, status int, v any) string {
	c.t.Helper()
	return c.readAs(request(c.t, "GET", "api/"+path), status, v)
}

// act sends a POST with a token, and reads the answer into v.
func (c *console) act(path, body string, status int, v any) string {
	c.t.Helper()
	r := request(c.t, "POST", "api/"+path, "Authorization", "Bearer "+secret, "Content-Type", "application/json")
	r.Body = io.NopCloser(strings.NewReader(body))
	r.RemoteAddr = "192.0.2.77:1234"
	return c.readAs(r, status, v)
}

func (c *console) readAs(r *http.Request, status int, v any) string {
	c.t.Helper()
	w := answer(c, r)
	if w.Code != status {
		c.t.Fatalf("%s %s: %d, want %d: %s", r.Method, r.URL, w.Code, status, w.Body)
	}
	if v == nil {
		return w.Body.String()
	}
	d := json.NewDecoder(strings.NewReader(w.Body.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		c.t.Fatalf("%s: %v in %s", r.URL, err, w.Body)
	}
	return w.Body.String()
}

func TestActs(t *testing.T) {
	c := newActing(t)
	const key = "ip:192.0.2.1"
	var ban, undone actions.Action
	c.act("acts", `{"act":"ban","rule":"api","key":"`+key+`","for_s":600,"note":"scan","by":"Ann"}`, 200, &ban)
	if !strings.HasPrefix(ban.By, "Ann (token ") || !strings.HasSuffix(ban.By, ", 192.0.2.77)") ||
		*ban.Until-ban.At != 600_000 || !ban.Undoable || strings.Contains(ban.By, secret) {
		t.Errorf("the act is %+v", ban)
	}
	if terms, _ := c.options.Engine.Terms("api", key); !terms.Banned {
		t.Error("the key is not banned")
	}
	c.act("acts/"+ban.ID+"/undo", `{"by":"Bob"}`, 200, &undone)
	if undone.Undone == nil || !strings.HasPrefix(undone.Undone.By, "Bob (token ") {
		t.Errorf("the act is %+v", undone)
	}
	c.act("acts/"+ban.ID+"/undo", `{}`, 409, nil)
	c.act("acts/000/undo", `{}`, 404, nil)
	c.act("lost", `{"by":"Bob"}`, 409, nil)

	c.act("acts", `{"act":"mode","rule":"api","mode":"shadow","for_s":null,"limits":null,"key":null,"note":null,"by":null,"keep_usage":null}`, 200, nil)
	c.act("acts", `{"act":"raise","rule":"api","key":"`+key+`","limits":["50/m","1000/h"],"keep_usage":true}`, 200, nil)
	c.act("acts", `{"act":"lift","rule":"api","key":"`+key+`"}`, 200, nil)
	c.act("acts", `{"act":"reset","rule":"api","key":"`+key+`"}`, 200, nil)
	var list struct {
		Acts []actions.Action `json:"acts"`
		Lost lostView         `json:"lost"`
	}
	text := c.read("acts", 200, &list)
	var got strings.Builder
	for _, a := range list.Acts {
		fmt.Fprint(&got, a.Kind, " ", a.Undoable, ", ")
	}
	if want := "reset false, lift true, raise false, mode true, ban false, "; got.String() != want {
		t.Errorf("the list is %s, want %s", got.String(), want)
	}
	if strings.Contains(text, "from") || strings.Contains(text, "used") {
		t.Errorf("the list has what an undo needs: %s", text)
	}
	for body, status := range map[string]int{
		`{"act":"ban","rule":"nobody","key":"k"}`:                        404,
		`{"act":"ban","rule":"api","key":"192.0.2.1"}`:                   422,
		`{"act":"ban","rule":"edge/user","key":"k"}`:                     422,
		`{"act":"lift","rule":"api","key":"ip:192.0.2.9"}`:               409,
		`{"act":"mode","rule":"api","mode":"shadow"}`:                    200,
		`{"act":"mode","rule":"trial","mode":"shadow"}`:                  409,
		`{"act":"raise","rule":"api","key":"ip:192.0.2.9"}`:              400,
		`{"act":"raise","rule":"api","key":"ip:1.1.1.1","limits":["x"]}`: 400,
		`{"act":"raise","rule":"api","key":"ip:1.1.1.1","limits":"5/m"}`: 400,
		`{"act":"ban","rule":"api","key":"ip:1.1.1.1","for_s":-1}`:       400,
		`{"act":"ban","rule":"api","key":"ip:1.1.1.1","until":"x"}`:      400,
		`{"act":"ban","act":"lift","rule":"api","key":"ip:1.1.1.1"}`:     400,
		`[]`:                          400,
		`{"act":"x","rule":"api"}`:    400,
		`{"act":"mode","rule":"api"}`: 400,
		`{"note":"` + strings.Repeat("x", 70_000) + `"}`: 413,
	} {
		var p struct {
			Detail string `json:"detail"`
		}
		text := c.act("acts", body, status, nil)
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 200 && p.Detail == "" {
			t.Errorf("the answer to %.80s is %s", body, text)
		}
	}
}

// TestListIsReadOnceASecond: for all open pages together, and again after an action.
func TestListIsReadOnceASecond(t *testing.T) {
	redis := redistest.Start(t)
	reads := func() (n int) {
		text, err := redis.Do(t.Context(), "INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(text, "cmdstat_hgetall:calls=")
		_, _ = fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &n) // 0: none yet
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(t, opened(t, redis.URL()+redistest.Patient), secret)
		const ban = `{"act":"ban","rule":"api","key":"ip:192.0.2.1"}`
		list := func(want int) {
			t.Helper()
			r := request(t, "GET", "api/acts", "Authorization", "Bearer "+secret)
			if got := strings.Count(c.readAs(r, 200, nil), `"id"`); got != want {
				t.Errorf("%d actions are listed, want %d", got, want)
			}
		}
		list(0)
		c.act("acts", ban, 200, nil)
		before := reads()
		for range 20 {
			list(1)
		}
		if n := reads() - before; n != 1 {
			t.Errorf("20 pages read the list %d times", n)
		}
		time.Sleep(listTTL)
		list(1)
		if n := reads() - before; n != 2 {
			t.Errorf("after a second, it was read %d times", n)
		}
	})
}

// TestFieldsOfActs: what would have no effect is refused, and so are times that are none.
func TestFieldsOfActs(t *testing.T) {
	c := newActing(t)
	for body, want := range map[string]string{
		`{}`:            "act is missing; want reset, raise, ban, lift or mode",
		`{"act":"x"}`:   `act is \"x\"; want reset, raise`,
		`{"act":"ban"}`: "rule is missing",
		`{"act":"ban","rule":"api","key":"ip:1.1.1.1","limits":["9/m"]}`:                  "limits is not a field of ban; want only act, rule, note, by, key, for_s",
		`{"act":"ban","rule":"api","key":"ip:1.1.1.1","keep_usage":false}`:                "keep_usage is not a field of ban",
		`{"act":"mode","rule":"api","mode":"shadow","key":""}`:                            "key is not a field of mode",
		`{"act":"mode","rule":"api","mode":"file","for_s":60}`:                            "for_s is given with mode file",
		`{"act":"reset","rule":"api","key":"ip:1.1.1.1","for_s":60}`:                      "for_s is not a field of reset",
		`{"act":"lift","rule":"api","key":"ip:1.1.1.1","mode":"file"}`:                    "mode is not a field of lift",
		`{"act":"ban","rule":"api","key":"ip:1.1.1.1","for_s":0}`:                         "for_s is 0; want a number of seconds from 1",
		`{"act":"raise","rule":"api","key":"ip:1.1.1.1","limits":["9/m"],"for_s":0.0001}`: "for_s is 0.0001; want a number of seconds from 1",
		`{"act":"ban","rule":"api","key":"ip:1.1.1.1","for_s":1e300}`:                     "for_s is 1e300; want a number of seconds",
	} {
		var p problem.Problem
		c.act("acts", body, 400, &p)
		if !strings.Contains(p.Detail, strings.ReplaceAll(want, `\"`, `"`)) || !strings.HasPrefix(p.Detail, p.Field+" is ") {
			t.Errorf("%s: %+v, want %s", body, p, want)
		}
	}
	if list, err := c.executor.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v was done, %v", list, err)
	}
}

// TestStoreFails: the errors say what is not known, in the words of what was asked.
func TestStoreFails(t *testing.T) {
	redis := redistest.Start(t)
	c := newConsole(t, opened(t, redis.URL()+redistest.Patient), secret)
	redis.Stop()
	for path, want := range map[string]string{
		"acts":        "the action may or may not have been done",
		"acts/1/undo": "the action may or may not have been done",
	} {
		body := "{}"
		if path == "acts" {
			body = `{"act":"ban","rule":"api","key":"ip:1.1.1.1"}`
		}
		if text := c.act(path, body, 503, nil); !strings.Contains(text, want) || strings.Contains(text, "cost") {
			t.Errorf("%s: %s", path, text)
		}
	}
	if text := c.read("acts", 503, nil); !strings.Contains(text, "this cannot be shown now") {
		t.Errorf("the list: %s", text)
	}
}

// TestKey: a search over all rules finds those that have such keys, and charges nothing.
func TestKey(t *testing.T) {
	c := newActing(t)
	engine := c.options.Engine
	set, err := rules.NewSet(append(c.rules,
		rules.Rule{Name: "any", Limits: []headgate.Limit{headgate.PerMinute(10), headgate.PerDay(100)}},
		rules.Rule{Name: "jobs", Permits: 2, Key: []rules.KeyPart{{Source: "header", Name: "X"}}},
	))
	if err != nil {
		t.Fatal(err)
	}
	engine.Use(set)
	type found struct {
		Key   string     `json:"key"`
		Rules []keyState `json:"rules"`
	}
	look := func(query string) found {
		t.Helper()
		var f found
		c.read("key?"+query, 200, &f)
		return f
	}
	names := func(f found) (all []string) {
		for _, r := range f.Rules {
			all = append(all, r.Rule)
		}
		return all
	}
	if got := names(look("key=ip:192.0.2.1")); fmt.Sprint(got) != "[api trial]" {
		t.Errorf("of an address: %v", got)
	}
	for _, key := range []string{"user/42", "<img src=x>", "Ключ 鍵", "a&b=c%2F+ ", "a\nb", ""} {
		q := "key=" + url.QueryEscape(key)
		if got := look(q); len(got.Rules) != 0 || got.Key != key {
			t.Errorf("of %q, which is not used: %+v", key, got)
		}
		terms, _ := engine.Terms("any", key)
		for _, l := range terms.Limits {
			if _, err := c.options.Store.Take(t.Context(), headgate.Request{Key: key, Limit: l, Cost: 4}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			got := look(q)
			if len(got.Rules) != 1 || got.Rules[0].Rule != "any" || len(got.Rules[0].Limits) != 2 {
				t.Fatalf("of %q: %+v", key, got)
			}
			l := got.Rules[0].Limits[0]
			if l.Limit != "10/m" || l.Capacity != 10 || l.Remaining != 6 || !l.Allowed || *l.RetryAfter != 0 || *l.ResetAfter <= 0 {
				t.Errorf("of %q: %+v", key, l)
			}
		}
	}
	c.act("acts", `{"act":"ban","rule":"api","key":"ip:192.0.2.*","for_s":60,"note":"<b>"}`, 200, nil)
	got := look("rule=api&key=ip:192.0.2.1")
	if len(got.Rules) != 1 || !got.Rules[0].Banned {
		t.Errorf("of a banned key: %+v", got)
	}
	if p := look("key=header:a").Rules; len(p) != 1 || p[0].Permits == nil || p[0].Permits.Limit != 2 || p[0].Permits.InUse != 0 {
		t.Errorf("of permits: %+v", p)
	}
	c.read("key?rule=nobody&key=k", 404, nil)
	c.read("key", 400, nil)
	c.read("key?key="+strings.Repeat("x", 5000), 400, nil)
}

// TestConfig: the active rules, overrides and switched modes.
func TestConfig(t *testing.T) {
	c := newActing(t)
	c.act("acts", `{"act":"mode","rule":"api","mode":"shadow","note":"too tight","by":"Ann"}`, 200, nil)
	c.act("acts", `{"act":"ban","rule":"api","key":"ip:192.0.2.9"}`, 200, nil)
	var v configView
	c.read("config", 200, &v)
	if len(v.Rules) != 2 {
		t.Fatalf("the rules are %+v", v)
	}
	want := ruleView{
		rule: rule{Name: "api", Kind: "rule", Mode: "shadow", FileMode: "enforce"}, Key: "ip",
		Limits: []string{"5/m"}, Cost: "1", File: "test", Line: 3,
	}
	if fmt.Sprint(v.Rules[0]) != fmt.Sprint(want) {
		t.Errorf("the rule is %+v, want %+v", v.Rules[0], want)
	}
	if got := v.Rules[1].Cost; got != "1, counts 401, 5xx" {
		t.Errorf("the cost is %q", got)
	}
	if len(v.Overrides) != 1 || v.Overrides[0].Key != "ip:192.0.2.9" || !v.Overrides[0].Ban ||
		len(v.Modes) != 1 || v.Modes[0].Rule != "api" || v.Modes[0].Mode != "shadow" ||
		v.Modes[0].At == nil || !strings.HasPrefix(v.Modes[0].By, "Ann (token ") {
		t.Errorf("beside it: %+v, %+v", v.Overrides, v.Modes)
	}
}

// TestLoadError: the error of the last load has its places, and no password.
func TestLoadError(t *testing.T) {
	c := newActing(t)
	_, err := config.Parse("a.yaml", []byte("x: 1\nstore: postgres://u:"+secret+"@h\n"), config.Options{})
	c.LoadFailed(err, time.UnixMilli(1000))
	got := c.loaded.Load().state().Error
	if got == nil || got.At != 1000 || strings.Contains(got.Text, secret) ||
		!strings.HasPrefix(got.Text, "a.yaml:1: x: unknown field") || !strings.Contains(got.Text, "\na.yaml:2: store: ") {
		t.Errorf("the error is %+v", got)
	}
}

// TestNotesWithoutSecrets: notes of overrides and switches do not show what is hidden in the files.
func TestNotesWithoutSecrets(t *testing.T) {
	c := newActing(t)
	loaded, err := config.Parse("a.yaml", []byte(exampleRules+"api: {tokens: ["+secret+"]}\nstore: redis://:password@h\n"), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Use(loaded, time.Now())
	c.options.Overrides.UseFile([]rules.Override{{Rule: "api", Key: "ip:192.0.2.9", Ban: true, Note: "as " + secret}})
	c.act("acts", `{"act":"ban","rule":"api","key":"ip:192.0.2.8","note":"redis://:password@h"}`, 200, nil)
	c.act("acts", `{"act":"mode","rule":"api","mode":"shadow","note":"as `+secret+` says"}`, 200, nil)
	text := c.read("config", 200, nil)
	if strings.Contains(text, secret) || strings.Contains(text, "password") {
		t.Error(text)
	}
	for _, want := range []string{`"as (hidden)"`, `"note":"redis://(hidden)@h"`, "as (hidden) says"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

// TestDomain: a counter of Envoy's dialect is shown and reset, and cannot be undone.
func TestDomain(t *testing.T) {
	c := newActing(t)
	for _, user := range []string{"ann", "a|b=c/<i>"} {
		for range 2 {
			c.ask(user)
		}
		key := strings.NewReplacer("|", `\|`, "=", `\=`).Replace(user)
		q := "key?rule=edge/user&key=" + url.QueryEscape("user="+key)
		remaining := func() int64 {
			var f struct {
				Key   string
				Rules []keyState
			}
			if c.read(q, 200, &f); len(f.Rules) != 1 || f.Key != "user="+key {
				t.Fatalf("of %s: %+v", q, f)
			}
			if len(f.Rules[0].Limits) == 0 {
				return 2
			}
			return f.Rules[0].Limits[0].Remaining
		}
		if n := remaining(); n != 0 {
			t.Errorf("of %s: %d remaining", user, n)
		}
		body, err := json.Marshal(map[string]string{"act": "reset", "rule": "edge/user", "key": "user=" + key})
		if err != nil {
			t.Fatal(err)
		}
		var reset actions.Action
		c.act("acts", string(body), 200, &reset)
		if n := remaining(); n != 2 || reset.Undoable {
			t.Errorf("of %s, after the reset: %d remaining, %+v", user, n, reset)
		}
		text := c.act("acts/"+reset.ID+"/undo", "{}", 422, nil)
		if !strings.Contains(text, "a reset cannot be undone") {
			t.Errorf("the undo is answered with %s", text)
		}
	}
	c.read("key?rule=nowhere/user&key=k", 404, nil)
	c.act("acts", `{"act":"reset","rule":"nowhere/user","key":"k"}`, 422, nil)
}

// state is all that acts can change.
func (c *console) stateText() string {
	c.t.Helper()
	list, err := c.executor.List(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	file, put := c.options.Overrides.List()
	var text strings.Builder
	fmt.Fprintf(&text, "%+v %+v %+v %+v", list, file, put, c.options.Overrides.Modes())
	terms, err := c.options.Engine.Terms("api", "ip:192.0.2.1")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range terms.StateLimits() {
		d, err := c.options.Store.Take(c.t.Context(), headgate.Request{Key: "ip:192.0.2.1", Limit: l})
		if err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprint(&text, d.Remaining)
	}
	return text.String()
}

// FuzzWithoutTokenNothingChanges: a caller that has no token, a wrong one, comes from another site, or
// sends no JSON changes nothing, whatever is sent.
func FuzzWithoutTokenNothingChanges(f *testing.F) {
	const ban = `{"act":"ban","rule":"api","key":"ip:192.0.2.1"}`
	for _, path := range []string{"acts", "acts/ID/undo", "key?rule=api&key=ip:192.0.2.1", "acts/../acts", "access"} {
		for _, method := range []string{"POST", "GET", "PUT", "DELETE"} {
			f.Add(method, path, ban, "", "", "", "application/json")
		}
		f.Add("POST", path, ban, "Bearer "+secret+"0", "", "", "application/json")
		f.Add("POST", path, ban, "Bearer", "", "", "application/json")
		f.Add("POST", path, ban, "Bearer  ", "", "", "application/json")
		f.Add("POST", path, ban, "Basic "+secret, "", "", "application/json")
		f.Add("POST", path, ban, "Bearer "+secret, "https://evil.example", "", "application/json")
		f.Add("POST", path, ban, "Bearer "+secret, "", "cross-site", "application/json")
		f.Add("POST", path, ban, "Bearer "+secret, "null", "", "application/json")
		f.Add("POST", path, ban, "Bearer "+secret, "", "", "text/plain")
		f.Add("POST", path, ban, "Bearer "+secret, "", "", "application/x-www-form-urlencoded")
		f.Add("POST", path, ban, "Bearer "+secret, "", "", "")
		f.Add("POST", path, `{"act":"mode","rule":"api","mode":"shadow"}`, "bearer "+strings.ToUpper(secret), "", "", "application/json")
	}
	f.Fuzz(func(t *testing.T, method, path, body, authorization, origin, site, kind string) {
		c := newActing(t)
		var act actions.Action
		c.act("acts", `{"act":"raise","rule":"api","key":"ip:192.0.2.1","limits":["9/m"]}`, 200, &act)
		before := c.stateText()
		target, err := url.Parse("http://127.0.0.1:8080/console/api/" + strings.ReplaceAll(path, "ID", act.ID))
		if err != nil || strings.ContainsAny(method, " \r\n") || method == "" {
			return
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:8080/", strings.NewReader(body))
		r.Method, r.URL = method, target
		for name, value := range map[string]string{
			"Authorization": authorization, "Origin": origin, "Sec-Fetch-Site": site, "Content-Type": kind,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if strings.Contains(authorization, secret) && mayAct(r) {
			return
		}
		w := answer(c, r)
		if after := c.stateText(); after != before {
			t.Errorf("%s %s %q with %q, %q, %q, %q answered %d and changed\n%s\nto\n%s",
				method, target, body, authorization, origin, site, kind, w.Code, before, after)
		}
	})
}

// mayAct reports whether r is what the page sends: by its own rules, and not by those of the console.
func mayAct(r *http.Request) bool {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	origin := r.Header.Get("Origin")
	site := r.Header.Get("Sec-Fetch-Site")
	return strings.TrimSpace(token) == secret &&
		strings.EqualFold(strings.TrimSpace(kind), "application/json") &&
		(origin == "" || origin == "http://127.0.0.1:8080" || site != "") &&
		(site == "" || site == "same-origin" || site == "none")
}
