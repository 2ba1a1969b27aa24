package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redistest"
)

// tryOut asks what limits would have denied, without a token.
func (c *console) tryOut(body string, status int) string {
	c.t.Helper()
	return c.readAs(trialRequest(c.t, body), status, nil)
}

func trialRequest(t testing.TB, body string, header ...string) *http.Request {
	t.Helper()
	r := request(t, "POST", "api/what-if", append(header, "Content-Type", "application/json")...)
	r.Body = io.NopCloser(strings.NewReader(body))
	return r
}

// sees is a decision of the rule api.
func (c *console) sees(key string, o rules.Outcome, cause rules.Cause) {
	c.options.Sample.Add(rules.Event{Rule: &c.rules[0], Key: key, Cost: 1, Outcome: o, Cause: cause})
}

// tried is the answer to a what-if.
type tried struct {
	whatIf

	Replay struct {
		Limits []struct {
			Denied int64 `json:"denied"`
		} `json:"limits"`
	} `json:"replay"`
}

// try asks for one limit of the rule api.
func (c *console) try(more string) (v tried) {
	c.t.Helper()
	text := c.tryOut(`{"rule":"api","limits":["10/m"]`+more+`}`, 200)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		c.t.Fatal(err)
	}
	return v
}

func TestWhatIf(t *testing.T) {
	c := newActing(t)
	c.tryOut(`{"rule":"api","limits":["5/m"]}`, 404)
	for i := range 20 {
		e := rules.Event{Rule: &c.rules[0], Key: fmt.Sprint("ip:", i%2), Cost: 1, Outcome: rules.Allowed}
		if i >= 15 {
			e.Outcome = rules.Denied
		}
		c.options.Sample.Add(e)
	}
	var v struct {
		whatIf

		Replay struct {
			Limits []struct {
				Denied int64 `json:"denied"`
			} `json:"limits"`
			Detail *struct{} `json:"detail"`
		} `json:"replay"`
	}
	text := c.tryOut(`{"rule":"api","limits":["6/m","100/m"]}`, 200)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if v.Keys != 2 || v.KeyShare != 1 || v.Requests != 20 || v.Denied != 5 || v.Instance == "" || *v.To < *v.From {
		t.Errorf("the sample is %+v", v)
	}
	if len(v.Replay.Limits) != 2 || v.Replay.Limits[0].Denied != 8 || v.Replay.Limits[1].Denied != 0 || v.Replay.Detail == nil {
		t.Errorf("the replay is %s", text)
	}
	if len(v.Instances) != 1 || v.Instances[0].Name != v.Instance || len(v.Missing) != 0 || v.Alone != "" {
		t.Errorf("the instances are %+v, without %v: %s", v.Instances, v.Missing, v.Alone)
	}
	for body, want := range map[string]string{
		`{"rule":"api","limits":[]}`:            "limits is []",
		`{"rule":"api"}`:                        "limits is missing",
		`{"rule":"api","limits":["5/x"]}`:       "5/x",
		`{"rule":"api","limits":["1/m"],"x":1}`: "unknown field",
		`{"rule":"api","limits":["1/m","2/m","3/m","4/m","5/m","6/m","7/m","8/m","9/m"]}`: "limits is a list of 9; want at most 8",
	} {
		if text := c.tryOut(body, 400); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", body, text, want)
		}
	}
	if text := c.tryOut(`{"rule":"nobody","limits":["5/m"]}`, 404); !strings.Contains(text, `rule is \"nobody\"; want the name of a rule`) {
		t.Errorf("of an unknown rule: %s", text)
	}
	c.tryOut(`{"rule":"edge/user","limits":["5/m"]}`, 422)
}

// What the fleet decided is replayed, whether or not somebody looks: each instance alone stays below
// the limit.
func TestWhatIfOfTheFleet(t *testing.T) {
	redis := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		var all instances
		for i := range 3 {
			c := newConsole(t, opened(t, redis.URL()))
			c.instance = fmt.Sprint("host-", i)
			all = append(all, c)
			defer c.run()()
		}
		time.Sleep(2 * time.Second)
		for range 8 {
			for _, c := range all {
				time.Sleep(100 * time.Millisecond)
				c.sees("ip:a", rules.Allowed, rules.ByLimits)
			}
		}
		check := func(when string, v tried) {
			t.Helper()
			if v.Requests != 24 || v.Keys != 1 || v.KeyShare != 1 || v.Replay.Limits[0].Denied != 14 {
				t.Errorf("%s: %+v", when, v)
			}
			if len(v.Instances) != 3 || v.Instances[0].Name != "host-1" || len(v.Missing) != 0 || v.Alone != "" {
				t.Errorf("%s: of %+v, without %v: %s", when, v.Instances, v.Missing, v.Alone)
			}
		}
		check("while nobody looks", all[1].try(""))
		viewer := all[1].look()
		time.Sleep(3 * time.Second)
		began := time.Now()
		check("while somebody looks", all[1].try(""))
		if took := time.Since(began); took > 1300*time.Millisecond {
			t.Errorf("while somebody looks, it takes %v", took)
		}
		all[1].leave(viewer)
		check("again", all[1].try(""))
		if keys, err := redis.Do(t.Context(), "KEYS", "*wanted"); err != nil || keys != "" {
			t.Errorf("a sample is still wanted: %s, %v", keys, err)
		}
	})
}

// An instance that does not answer is missing by its name; one that has ended does not count.
func TestWhatIfWithoutAnInstance(t *testing.T) {
	redis := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(t, opened(t, redis.URL()))
		c.sees("ip:a", rules.Allowed, rules.ByLimits)
		defer c.run()()
		for _, args := range [][]string{
			{"ZADD", "hg:{@console}:@instances", "0", "old", "0", "ended"},
			{"SET", "hg:{@console}:@now:old", `{"instance":{"name":"host-old"}}`},
		} {
			if _, err := redis.Do(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		v := c.try("")
		if fmt.Sprint(v.Missing) != "[host-old]" || v.Requests != 1 || time.Since(began) > 5*time.Second {
			t.Errorf("without %v after %v", v.Missing, time.Since(began))
		}
	})
}

// Without the store, an instance replays what it knows, and says that it is alone.
func TestWhatIfWithoutTheStore(t *testing.T) {
	redis := redistest.Start(t)
	c := newConsole(t, opened(t, redis.URL()))
	c.sees("ip:a", rules.Allowed, rules.ByLimits)
	redis.Stop()
	if v := c.try(""); v.Alone == "" || v.Requests != 1 || len(v.Missing) != 0 {
		t.Errorf("%+v", v)
	}
}

// What a ban or an override decided is left aside, because the limits of the rule do not decide it.
func TestWhatIfAside(t *testing.T) {
	c := newActing(t)
	for range 12 {
		c.sees("ip:a", rules.Denied, rules.ByBan)
		c.sees("ip:b", rules.Allowed, rules.ByOverride)
		c.sees("ip:c", rules.Allowed, rules.ByLimits)
	}
	c.sees("ip:b", rules.Denied, rules.ByOverride)
	c.sees("ip:c", rules.Denied, rules.ByPermits)
	c.sees("ip:c", rules.Denied, rules.ByLimits)
	by := fmt.Sprint(c.try("").DeniedBy)
	if by != "{1 1 12 1}" {
		t.Errorf("denied by %s", by)
	}
	if v := c.try(""); v.Requests != 14 || v.Denied != 2 || v.Aside != 25 || v.Keys != 1 || v.Replay.Limits[0].Denied != 4 {
		t.Errorf("%+v", v)
	}
	if v := c.try(`,"lifted":true`); v.Requests != 39 || v.Denied != 15 || v.Aside != 0 || v.Keys != 3 || v.Replay.Limits[0].Denied != 9 {
		t.Errorf("lifted: %+v", v)
	}
}

// Who may read may ask; one after the other.
func TestWhoMayTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newActing(t)
		c.sees("ip:a", rules.Allowed, rules.ByLimits)
		body := `{"rule":"api","limits":["5/m"]}`
		c.readAs(trialRequest(t, body, "Sec-Fetch-Site", "cross-site"), 403, nil)
		c.readAs(trialRequest(t, body, "X-Forwarded-For", "192.0.2.1"), 401, nil)
		c.readAs(trialRequest(t, strings.Repeat(" ", 70_000)), 413, nil)
		text := trialRequest(t, body)
		text.Header.Set("Content-Type", "text/plain")
		c.readAs(text, 415, nil)
		c.asking <- struct{}{}
		c.tryOut(body, 503)
		go func() { time.Sleep(time.Second); <-c.asking }()
		c.tryOut(body, 200)
	})
}
