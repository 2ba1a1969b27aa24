package httpapi

import (
	"testing"
	"testing/synctest"
)

// What leaves headroom is granted only while that much is left; only the cost is charged.
func TestHeadroom(t *testing.T) { synctest.Test(t, testHeadroom) }

func testHeadroom(t *testing.T) {
	f := build(t, nil, Settings{})
	const half = `{"rule":"tokens","key":"k","cost":500,"headroom":500}`
	f.post("/v1/peek", `{"rule":"tokens","key":"k","headroom":999}`).want(t, 200, `"allowed":true`)
	f.post("/v1/take", half).want(t, 200, `"allowed":true`, `"remaining":500`)
	f.post("/v1/take", `{"rule":"tokens","key":"k","headroom":500}`).want(t, 200, `"allowed":false`,
		`"remaining":500`, `"retry_after":3.6`)
	f.post("/v1/peek", `{"rule":"tokens","key":"k","headroom":500}`).want(t, 200, `"allowed":false`)
	f.post("/v1/take-all", `{"requests":[{"rule":"tokens","key":"k","headroom":500},{"rule":"login","key":"k"}]}`).
		want(t, 200, `{"allowed":false,"retry_after":3.6`, `"remaining":500`, `"remaining":5`)
	f.post("/v1/take", `{"rule":"tokens","key":"k","cost":500}`).want(t, 200, `"allowed":true`, `"remaining":0`)
	f.post("/v1/take", `{"rule":"tokens","key":"k","headroom":1000}`).want(t, 200, `"allowed":false`, `"remaining":0,"reset_after":3600}`)
	for body, want := range map[string]string{ //nolint:gosec,nolintlint // of the test
		`{"rule":"tokens","key":"k","headroom":-1}`:               `headroom is -1; want a whole number from 0`,
		`{"rule":"tokens","key":"k","headroom":1,"force":true}`:   `headroom is given with force or max_wait; want`,
		`{"rule":"tokens","key":"k","headroom":1,"max_wait":0.5}`: `headroom is given with force or max_wait; want`,
	} {
		f.post("/v1/take", body).want(t, 400, want)
	}
}

// A permit is acquired only if headroom permits are free afterwards.
func TestHeadroomOfPermits(t *testing.T) {
	f := start(t, nil, Settings{})
	const one = `{"rule":"exports","key":"k","headroom":1}`
	f.post("/v1/acquire", one).want(t, 200, `"allowed":true`, `"permits":2,"in_use":1`)
	f.post("/v1/acquire", one).want(t, 200, `"allowed":false`, `"permits":2,"in_use":1`)
	f.post("/v1/acquire", `{"rule":"exports","key":"k"}`).want(t, 200, `"allowed":true`, `"in_use":2`)
	f.post("/v1/acquire", `{"rule":"exports","key":"x","headroom":2}`).want(t, 200,
		`"allowed":false`, `"in_use":0}`)
}
