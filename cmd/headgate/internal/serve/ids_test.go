package serve

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"

	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
)

// settles reports whether b settles a reservation of a.
func settles(t *testing.T, a, b *running) bool {
	t.Helper()
	var address [4]byte
	_, _ = rand.Read(address[:]) // never fails
	_, text := a.do(http.MethodPost, "/v1/reserve",
		`{"rule":"api","key":"ip:`+netip.AddrFrom4(address).String()+`"}`)
	var got struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	status, _ := b.do(http.MethodPost, "/v1/commit", `{"id":"`+got.ID+`","cost":0}`)
	return status == http.StatusOK
}

// Instances of one Redis settle each other's reservations, also one that had to start without it.
func TestInstancesSettleEachOthersReservations(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	proxy := redistest.StartProxy(t, redis.Addr)
	proxy.Cut(1)
	late := serveHTTP(t, Options{Store: "redis://" + proxy.Addr})
	late.get("/-/healthy")                                       // it has tried to share its key before it serves
	if _, err := redis.Do(t.Context(), "FLUSHALL"); err != nil { // its key may have come through
		t.Fatal(err)
	}
	a, b := serveHTTP(t, Options{Store: "redis://" + redis.Addr}), serveHTTP(t, Options{Store: "redis://" + redis.Addr})
	if !settles(t, a, b) || !settles(t, b, a) {
		t.Error("an instance refuses the reservation of another")
	}
	proxy.Heal() // from now on: late reads the key only by itself, as it gets no id of another
	eventually.True(t, "the key of an instance that started without Redis is shared", func() bool {
		return settles(t, late, a) && settles(t, a, late)
	})
}
