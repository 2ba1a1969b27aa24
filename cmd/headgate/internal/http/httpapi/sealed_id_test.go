package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// commit settles a reservation, and returns the answer.
func (f *server) commit(id string, used int) response {
	f.t.Helper()
	return f.post("/v1/commit", fmt.Sprintf(`{"id":%q,"cost":%d}`, id, used))
}

// reserve reserves tokens of the key k, and returns the id.
func (f *server) reserve(cost int) string {
	f.t.Helper()
	got := f.post("/v1/reserve", fmt.Sprintf(`{"rule":"tokens","key":"k","cost":%d}`, cost))
	got.want(f.t, 200, `"allowed":true`)
	return got.id(f.t)
}

// wantRefused fails unless id is refused and nothing of the key k comes back.
func (f *server) wantRefused(id string, remaining int) {
	f.t.Helper()
	f.commit(id, 0).want(f.t, 400, `"field":"id"`)
	f.wantRemaining(remaining)
}

func (f *server) wantRemaining(n int) {
	f.t.Helper()
	f.post("/v1/peek", `{"rule":"tokens","key":"k"}`).want(f.t, 200, fmt.Sprintf(`"remaining":%d,`, n))
}

// unsigned are reservations without a signature.
var unsigned = idKind{mark: reservationID.mark}

// An id that the server did not make refunds nothing.
func TestForgedID(t *testing.T) { synctest.Test(t, testForgedID) }

func testForgedID(t *testing.T) {
	f := build(t, nil, Settings{})
	f.reserve(1000)
	forged := reservation{Rule: "tokens", Key: "k", Cost: 1000}
	other := newIDKey(nil)
	for name, id := range map[string]string{
		"unsigned":             f.handler.ids.seal(unsigned, forged),
		"of another key":       other.seal(reservationID, forged),
		"with an empty key":    sealWith(nil, forged),
		"shorter than the sum": reservationID.mark + encoding.EncodeToString([]byte("{}")),
		"signed as a permit":   f.handler.ids.seal(idKind{mark: permitID.mark, signed: true}, forged),
	} {
		if f.wantRefused(id, 0); t.Failed() {
			t.Fatal("an id " + name)
		}
	}
	f.wantRefused(sealWith(make([]byte, idKeySize), forged), 0)
}

// Instances of other versions read and make the same ids.
func TestBytesOfIDs(t *testing.T) {
	k := newIDKey(nil)
	v := reservation{Rule: "tokens", Key: "<k>", Cost: 3, Starts: []int64{7}}
	if got, want := k.seal(reservationID, v), sealWith(*k.secret.Load(), v); got != want {
		t.Errorf("the id of a reservation is %s, want %s", got, want)
	}
	const text = `{"r":"exports","k":"<k>","i":"00ff"}`
	got, want := k.seal(permitID, permit{"exports", "<k>", "00ff"}), "p1."+encoding.EncodeToString([]byte(text))
	if got != want {
		t.Errorf("the id of a permit is %s, want %s", got, want)
	}
}

func sealWith(key []byte, v any) string {
	text := idText(v)
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return "r1." + encoding.EncodeToString(append(text, mac.Sum(nil)[:signatureSize]...))
}

// An id of which any character is another is refused, and so is a part of it.
func TestAlteredID(t *testing.T) { synctest.Test(t, testAlteredID) }

func testAlteredID(t *testing.T) {
	f := build(t, nil, Settings{})
	id := f.reserve(600)
	for i := range id {
		for _, c := range []byte("AQgw_") {
			if id[i] != c {
				f.commit(id[:i]+string(c)+id[i+1:], 0).want(t, 400, `"field":"id"`)
			}
		}
	}
	f.wantRefused(id[:len(id)-1], 400)
	f.wantRefused(id+"A", 400)
	f.wantRefused(strings.ToUpper(id), 400)
	f.commit(id, 100).want(t, 200, `"refunded":500`)
}

// openStore opens the store of a Redis.
func openStore(t *testing.T, redis *redistest.Server) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open("redis://" + redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// Instances of one Redis sign with one key, which expires.
func TestInstancesShareTheKeyOfIDs(t *testing.T) {
	redis := redistest.Start(t)
	store := openStore(t, redis)
	a, b := start(t, store, Settings{}), start(t, store, Settings{})
	b.commit(a.reserve(300), 100).want(t, 200, `"refunded":200`)
	a.commit(b.reserve(300), 100).want(t, 200, `"refunded":200`)
	client, prefix := store.Client(), store.Prefix()
	name := prefix + "{@ids}:@key"
	life := func() time.Duration { return client.PTTL(t.Context(), name).Val() }
	if got := life(); got <= idKeyLife-time.Hour || got > idKeyLife {
		t.Errorf("the key expires after %s, want %s", got, idKeyLife)
	}
	if err := client.Persist(t.Context(), name).Err(); err != nil {
		t.Fatal(err)
	}
	start(t, store, Settings{})
	if got := life(); got <= 0 {
		t.Errorf("after a start the key expires after %s", got)
	}
}

// When Redis loses the key, the instances that know it go on. Those with a new one refuse the ids
// that were made before, and all agree on the new one.
func TestRedisLosesTheKeyOfIDs(t *testing.T) {
	redis := redistest.Start(t)
	store := openStore(t, redis)
	a, b := start(t, store, Settings{}), start(t, store, Settings{})
	client := store.Client()
	flush := func() {
		t.Helper()
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	b.commit(a.reserve(300), 100).want(t, 200, `"refunded":200`)
	b.wantRefused(b.handler.ids.seal(unsigned, reservation{Rule: "tokens", Key: "k", Cost: 100}), 900)
	if err := a.handler.ShareKey(t.Context()); err != nil { // as when Redis answers again
		t.Fatal(err)
	}
	start(t, store, Settings{}).commit(a.reserve(300), 100).want(t, 200, `"refunded":200`)

	flush()
	old := a.reserve(300)
	c := start(t, store, Settings{}) // makes a new key
	c.wantRefused(old, 700)
	a.commit(c.reserve(300), 0).want(t, 200, `"refunded":300`)
	a.wantRefused(old, 700)
	b.commit(a.reserve(300), 0).want(t, 200, `"refunded":300`)
}

// While Redis fails, an id that is signed with the known key is settled, and nobody knows of another.
func TestIDsWithoutRedis(t *testing.T) {
	redis := redistest.Start(t)
	store := openStore(t, redis)
	f := build(t, store, Settings{})
	proxied := newIDKey(store)
	redis.Stop()
	if err := f.handler.ShareKey(t.Context()); err == nil {
		t.Error("the key is shared without Redis")
	}
	var v reservation
	id := f.handler.ids.seal(reservationID, reservation{Key: "k"})
	if err := f.handler.ids.unseal(t.Context(), id, reservationID, &v); err != nil || v.Key != "k" {
		t.Errorf("%+v %v", v, err)
	}
	id = proxied.seal(reservationID, reservation{})
	if err := f.handler.ids.unseal(t.Context(), id, reservationID, &v); toProblem(err).Status != 503 {
		t.Errorf("%v, want 503", err)
	}
}

// A value in Redis that is no key is an error, and signs nothing.
func TestDamagedKeyOfIDs(t *testing.T) {
	redis := redistest.Start(t)
	store := openStore(t, redis)
	client := store.Client()
	for _, damaged := range []string{"", "short", strings.Repeat("x", idKeySize+1)} {
		k := newIDKey(store)
		if err := client.Set(t.Context(), k.name, damaged, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		was := *k.secret.Load()
		if err := k.share(t.Context()); err == nil || !strings.Contains(err.Error(), "delete the key") {
			t.Errorf("%q: %v", damaged, err)
		}
		if string(*k.secret.Load()) != string(was) {
			t.Errorf("%q is used", damaged)
		}
	}
}

// The longest ids that the server makes are accepted.
func TestLongestID(t *testing.T) {
	f := start(t, nil, Settings{})
	for name, c := range map[string]string{"markup": "<", "text": "é", "control": "\x01"} {
		key := strings.Repeat(c, MaxKey/len(c))
		body, err := json.Marshal(map[string]any{"rule": "tokens", "key": key})
		if err != nil {
			t.Fatal(err)
		}
		id := f.post("/v1/reserve", string(body)).id(t)
		t.Logf("%s: an id of %d bytes", name, len(id))
		f.commit(id, 0).want(t, 200, `"refunded":1`)
	}
}
