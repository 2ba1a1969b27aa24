package httpapi

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := build(t, nil, Settings{})
		const k = `{"rule":"exports","key":"k","ttl":10}`
		got := f.post("/v1/acquire", k)
		got.want(t, 200, `{"allowed":true,"rule":"exports","permits":2,"in_use":1,"retry_after":0,"ttl":10,"id":"p1.`)
		first := got.id(t)
		second := f.post("/v1/acquire", `{"rule":"exports","key":"k"}`)
		second.want(t, 200, `"in_use":2`, `"ttl":60`)
		f.post("/v1/acquire", k).want(t, 200, `{"allowed":false`, `"in_use":2,"retry_after":10}`)
		f.post("/v1/acquire", `{"rule":"exports","key":"other"}`).want(t, 200, `"allowed":true`)

		time.Sleep(9 * time.Second)
		f.post("/v1/renew", `{"id":"`+first+`","ttl":10}`).want(t, 200, `{"renewed":true}`)
		time.Sleep(9 * time.Second)
		f.post("/v1/acquire", k).want(t, 200, `{"allowed":false`)
		f.post("/v1/release", `{"id":"`+first+`"}`).want(t, 200, `{"released":true}`)
		f.post("/v1/release", `{"id":"`+first+`"}`).want(t, 200, `{"released":false}`)
		f.post("/v1/renew", `{"id":"`+first+`"}`).want(t, 200, `{"renewed":false}`)
		f.post("/v1/acquire", k).want(t, 200, `{"allowed":true`)
		time.Sleep(60 * time.Second)
		f.post("/v1/renew", `{"id":"`+second.id(t)+`"}`).want(t, 200, `{"renewed":false}`)
	})
}

// A permit that is released later stays in use until then, whatever else is asked for it.
func TestPermitReleasedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := build(t, nil, Settings{})
		const k = `{"rule":"exports","key":"k"}`
		id := f.post("/v1/acquire", k).id(t)
		f.post("/v1/acquire", k).want(t, 200, `{"allowed":true`)
		f.post("/v1/release", `{"id":"`+id+`","after":-1}`).want(t, 400, `"field":"after"`,
			"after is -1; want a number of seconds from 0 to 86400")
		f.post("/v1/release", `{"id":"`+id+`","after":"1s"}`).want(t, 400, "want a number of seconds")
		f.post("/v1/release", `{"id":"`+id+`","after":1.5}`).want(t, 200, `{"released":true}`)
		f.post("/v1/release", `{"id":"`+id+`"}`).want(t, 200, `{"released":false}`)
		f.post("/v1/renew", `{"id":"`+id+`"}`).want(t, 200, `{"renewed":false}`)
		f.post("/v1/acquire", k).want(t, 200, `{"allowed":false`, `"in_use":2,"retry_after":1.5}`)
		time.Sleep(1500 * time.Millisecond)
		f.post("/v1/acquire", k).want(t, 200, `{"allowed":true`, `"in_use":2`)
	})
}

// A rule in shadow gives more permits than it has, and says which it would have denied.
func TestPermitsInShadow(t *testing.T) {
	f := start(t, nil, Settings{})
	for i, denied := range []string{"false", "false", "true", "true"} {
		f.post("/v1/acquire", `{"rule":"seats","key":"k"}`).want(t, 200, `{"allowed":true`, `"permits":2`,
			`"in_use":`+strconv.Itoa(i+1)+`,`, `"shadow_denied":`+denied)
	}
}

func TestPermitsInvalid(t *testing.T) { synctest.Test(t, testPermitsInvalid) }

func testPermitsInvalid(t *testing.T) {
	f := build(t, nil, Settings{})
	f.post("/v1/acquire", `{"rule":"login","key":"k"}`).want(t, 400, `"field":"rule"`, "which has no permits")
	for path, body := range map[string]string{
		"take": `{"rule":"exports","key":"k"}`, "peek": `{"rule":"exports","key":"k"}`,
		"refund": `{"rule":"exports","key":"k"}`, "reserve": `{"rule":"exports","key":"k"}`,
		"take-all": `{"requests":[{"rule":"login","key":"k"},{"rule":"exports","key":"k"}]}`,
	} {
		f.post("/v1/"+path, body).want(t, 400, `rule"}`, `rule is \"exports\"`,
			"which has permits and no limits; want a rule with limits, or /v1/acquire")
	}
	f.post("/v1/acquire", `{"rule":"exports","ttl":0}`).want(t, 400, "ttl is 0; want a number of seconds from 0.001 to 86400")
	f.post("/v1/acquire", `{"rule":"exports","cost":2}`).want(t, 400, "cost is an unknown field; want rule, key, ttl")
	f.post("/v1/acquire", `{"rule":"nobody"}`).want(t, 404, `rule is \"nobody\"`)
	f.send("PUT", "/v1/overrides", `{"rule":"exports","key":"bad","ban":true}`).want(t, 200)
	f.post("/v1/acquire", `{"rule":"exports","key":"bad"}`).want(t, 200, `{"allowed":false`, `"in_use":0}`)
	for range 2 {
		f.post("/v1/acquire", `{"rule":"exports","key":"k"}`)
	}
	got := f.post("/v1/acquire", `{"rule":"exports","key":"k"}`, "Prefer: status")
	got.want(t, 429, `"status":429`, `"detail":"All permits of the key are in use."`, `"allowed":false`)
	if got.Header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After is %q", got.Header.Get("Retry-After"))
	}
}
