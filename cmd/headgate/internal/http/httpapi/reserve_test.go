package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

func TestForce(t *testing.T) { synctest.Test(t, testForce) }

func testForce(t *testing.T) {
	f := build(t, nil, Settings{})
	f.post("/v1/take", `{"rule":"tokens","key":"k","cost":3000,"force":true}`).want(t, 200,
		`"allowed":false`, `"remaining":-2000`)
	f.post("/v1/take", `{"rule":"tokens","key":"k"}`).want(t, 200, `"allowed":false`, `"retry_after":720`)
	f.post("/v1/take", `{"rule":"tokens","key":"k","force":true,"max_wait":1}`).want(t, 400, `"field":"max_wait"`)
	f.post("/v1/take", `{"rule":"tokens","key":"k","force":1}`).want(t, 400, "want true or false")
	f.post("/v1/take", `{"rule":"trial","key":"k","cost":3,"force":true}`).want(t, 200,
		`"allowed":true`, `"remaining":-2`, `"shadow_denied":true`)
	if len(f.events) != 3 || f.events[0].Outcome.String() != "denied" {
		t.Errorf("observed %v", f.events)
	}
}

// TestReserveCommit: what was not used comes back, and what was used beyond the estimate is charged.
func TestReserveCommit(t *testing.T) { synctest.Test(t, testReserveCommit) }

func testReserveCommit(t *testing.T) {
	f := build(t, nil, Settings{})
	reserve := func(cost int) string {
		t.Helper()
		got := f.post("/v1/reserve", fmt.Sprintf(`{"rule":"tokens","key":"k","cost":%d}`, cost))
		got.want(t, 200, `"allowed":true`, `"wait":0`)
		return got.id(t)
	}
	commit := func(id string, used int, parts ...string) {
		t.Helper()
		f.post("/v1/commit", fmt.Sprintf(`{"id":%q,"cost":%d}`, id, used)).want(t, 200, parts...)
	}
	commit(reserve(1000), 400, `{"reserved":1000,"used":400,"refunded":600,"charged":0,"rule":"tokens"`, `"remaining":600`)
	commit(reserve(500), 500, `"refunded":0,"charged":0`, `"remaining":100`)
	commit(reserve(100), 2100, `"refunded":0,"charged":2000`, `"remaining":-`)
	f.post("/v1/reserve", `{"rule":"tokens","key":"k"}`).want(t, 200, `"allowed":false`, `"retry_after":`)
	f.send("DELETE", "/v1/keys/tokens/k", "").wantEmpty(t)
	commit(reserve(700), 0, `"refunded":700`, `"remaining":1000`)
}

// TestCancelAhead: a reservation that is cancelled before its start frees the start time, unless
// another was booked behind it.
func TestCancelAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := build(t, nil, Settings{})
		f.post("/v1/take", `{"rule":"login","key":"k","cost":5}`)
		reserve := func(wait string) string {
			t.Helper()
			got := f.post("/v1/reserve", `{"rule":"login","key":"k","max_wait":100}`)
			got.want(t, 200, `"allowed":true`, `"retry_after":0`, `"wait":`+wait+`,`)
			return got.id(t)
		}
		cancel := func(id, refunded string) {
			t.Helper()
			f.post("/v1/commit", `{"id":"`+id+`","cost":0}`).want(t, 200, `"refunded":`+refunded)
		}
		first := reserve("12")
		second := reserve("24")
		cancel(first, "0") // it stays charged: the second was granted after it
		cancel(second, "1")
		third := reserve("24")
		time.Sleep(25 * time.Second)
		cancel(third, "1") // its start has come
		f.post("/v1/peek", `{"rule":"login","key":"k"}`).want(t, 200, `"remaining":1`)
	})
}

// TestReserveRedis: any instance settles what another reserved.
func TestReserveRedis(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr
	var servers [2]*server
	for i := range servers {
		store, err := redisstore.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		servers[i] = start(t, store, Settings{})
	}
	a, b := servers[0], servers[1]
	a.post("/v1/take", `{"rule":"login","key":"k","cost":5}`).want(t, 200, `"allowed":true`)
	got := a.post("/v1/reserve", `{"rule":"login","key":"k","cost":2,"max_wait":100}`)
	got.want(t, 200, `"allowed":true`, `"wait":2`)
	b.post("/v1/commit", `{"id":"`+got.id(t)+`","cost":0}`).want(t, 200, `"refunded":2`)
	got = b.post("/v1/reserve", `{"rule":"tokens","key":"k","cost":300}`)
	a.post("/v1/commit", `{"id":"`+got.id(t)+`","cost":1500}`).want(t, 200, `"charged":1200`, `"remaining":-`)
}

func TestReserveInShadow(t *testing.T) {
	f := start(t, nil, Settings{})
	got := f.post("/v1/reserve", `{"rule":"trial","key":"k","cost":9}`)
	got.want(t, 200, `"allowed":true`, `"shadow_denied":true`)
	f.post("/v1/commit", `{"id":"`+got.id(t)+`","cost":0}`).want(t, 200, `"reserved":0`, `"refunded":0`)
	got = f.post("/v1/reserve", `{"rule":"trial","key":"k"}`)
	got.want(t, 200, `"shadow_denied":false`)
	f.post("/v1/commit", `{"id":"`+got.id(t)+`","cost":0}`).want(t, 200, `"reserved":1`, `"refunded":1`)
}

func TestInvalidIDs(t *testing.T) {
	f := start(t, nil, Settings{})
	permit := f.post("/v1/acquire", `{"rule":"exports","key":"k"}`).id(t)
	signed := func(v any) string { return f.handler.ids.seal(reservationID, v) }
	inline := signed(reservation{Limit: "5/m", Key: "k", Cost: 1})
	for id, want := range map[string]string{
		"":                       `id is missing; want an id that /v1/reserve returned`,
		"x":                      "id is ",
		permit:                   "want an id that /v1/reserve returned",
		signed(reservation{}):    "rule is missing",
		signed(permit):           "want an id that",
		reservationID.mark:       "id is not signed",
		reservationID.mark + "!": "want an id that",
		inline:                   "limit is not allowed",
		signed(reservation{Rule: "gone", Cost: 1}): `rule is \"gone\"`,
	} {
		got := f.post("/v1/commit", `{"id":"`+id+`","cost":1}`)
		if got.StatusCode < 400 || got.StatusCode > 404 {
			t.Errorf("%q is answered %d", id, got.StatusCode)
		}
		got.want(t, got.StatusCode, want)
	}
	f.post("/v1/commit", `{"id":"x"}`).want(t, 400, "cost is missing")
	for _, id := range []string{
		"", "x", inline, permitID.mark, f.handler.ids.seal(permitID, "x"), f.handler.ids.seal(permitID, map[string]string{"i": "00"}),
		f.handler.ids.seal(permitID, map[string]string{"i": strings.Repeat("0", 32)}),
		f.handler.ids.seal(permitID, map[string]string{"i": strings.Repeat("f", 34)}),
	} {
		f.post("/v1/release", `{"id":"`+id+`"}`).want(t, 400, `"field":"id"`, "want an id that /v1/acquire returned")
	}
}

// TestCommitAfterTheWindow: a reservation gives back nothing of a window that has ended.
func TestCommitAfterTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := headgate.NewMemory()
		f := build(t, store, Settings{})
		day, err := headgate.NewLimiter(store, limits(t, "login.2=100/d fixed-window")...)
		if err != nil {
			t.Fatal(err)
		}
		for after, want := range map[time.Duration]int64{time.Minute: 97, 49 * time.Hour: 99} {
			id := f.post("/v1/reserve", `{"rule":"login","key":"k","cost":4}`).id(t)
			time.Sleep(after)
			f.post("/v1/take", `{"rule":"login","key":"k"}`).want(t, 200, `"allowed":true`)
			f.post("/v1/commit", `{"id":"`+id+`","cost":2}`).want(t, 200, `"used":2`)
			if d, err := day.Peek(t.Context(), "k"); err != nil || d.Remaining != want {
				t.Errorf("%d remain of the day, settled after %s: %v; want %d", d.Remaining, after, err, want)
			}
			time.Sleep(48 * time.Hour)
		}
	})
}

// The start of a reservation that is cancelled is free again, also under a bucket.
func TestCancelledReservationFreesItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := build(t, nil, Settings{})
		reserve := func(cost int) response {
			return f.post("/v1/reserve", fmt.Sprintf(
				`{"rule": "tokens", "key": "k", "cost": %d, "max_wait": 7200}`, cost))
		}
		reserve(1000).want(t, 200, `"wait":0`)
		last := reserve(500)
		last.want(t, 200, `"wait":1800`)
		f.post("/v1/commit", fmt.Sprintf(`{"id": %q, "cost": 0}`, last.id(t))).
			want(t, 200, `"refunded":500`)
		reserve(100).want(t, 200, `"wait":360`)
	})
}

// What a key has left that is banned can be refunded, and looked at.
func TestRefundOfABannedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := build(t, nil, Settings{})
		f.post("/v1/take", `{"rule": "tokens", "key": "k", "cost": 900}`).want(t, 200)
		if err := f.overrides.Put(t.Context(),
			rules.Override{Rule: "tokens", Key: "k", Ban: true}); err != nil {
			t.Fatal(err)
		}
		f.post("/v1/refund", `{"rule": "tokens", "key": "k", "cost": 300}`).
			want(t, 200, `"allowed":true`, `"remaining":400`)
		f.post("/v1/peek", `{"rule": "tokens", "key": "k"}`).
			want(t, 200, `"allowed":false`, `"limit":"ban"`)
		if n := len(f.events); n != 1 {
			t.Errorf("%d events; want that of the take", n)
		}
	})
}

// What is reserved while a rule is off took nothing, so its commit changes nothing, also after the
// rule enforces again.
func TestReservationOfARuleThatIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := build(t, nil, Settings{})
		left := func() string {
			_, rest, _ := strings.Cut(f.post("/v1/peek", `{"rule": "login", "key": "k"}`).text, `"remaining":`)
			return rest[:1]
		}
		f.post("/v1/take", `{"rule": "login", "key": "k", "cost": 4}`).want(t, 200)
		f.handler.options.Engine.Switch(map[string]rules.Mode{"login": rules.Off})
		off := f.post("/v1/reserve", `{"rule": "login", "key": "k", "cost": 4}`).id(t)
		f.post("/v1/commit", fmt.Sprintf(`{"id": %q, "cost": 9}`, off)).
			want(t, 200, `"limit":"unlimited"`)
		f.handler.options.Engine.Switch(nil)
		f.post("/v1/commit", fmt.Sprintf(`{"id": %q, "cost": 0}`, off)).want(t, 200, `"refunded":0`)
		if got := left(); got != "1" {
			t.Errorf("%s remain; want 1", got)
		}
	})
}
