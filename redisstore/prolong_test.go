package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

// If the numbers of a limit change, the key lives for as long as the new ones need, even if all
// requests are denied. Nothing else of its state is written, and that once. A peek writes nothing.
func TestChangedNumbersProlong(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for _, texts := range [][2]string{
		{"10/20s", "10/10m"}, {"10/20s", "3/10m burst 5"}, {"10/2s burst 100", "10/10m"},
		{"10/20s stepped", "10/10m stepped"}, {"10/5s burst 40 stepped", "3/10m burst 5 stepped"},
	} {
		before, after := parse(t, texts[0]).Named("api"), parse(t, texts[1]).Named("api")
		other := parse(t, "other=1000/h")
		for name, ask := range map[string]func(key string) (headgate.Decision, error){
			"denied": func(key string) (headgate.Decision, error) {
				return s.Take(t.Context(), headgate.Request{Key: key, Limit: after, Cost: 1})
			},
			"peek": func(key string) (headgate.Decision, error) {
				return s.Take(t.Context(), headgate.Request{Key: key, Limit: after})
			},
			"peek with headroom": func(key string) (headgate.Decision, error) {
				return s.Take(t.Context(), headgate.Request{Key: key, Limit: after, Headroom: 1})
			},
			"too long a wait": func(key string) (headgate.Decision, error) {
				return s.Take(t.Context(), headgate.Request{Key: key, Limit: after, Cost: 1, MaxWait: time.Millisecond})
			},
			"group": func(key string) (headgate.Decision, error) {
				ds := make([]headgate.Decision, 2)
				err := s.TakeAll(t.Context(), []headgate.Request{
					{Key: key, Limit: after, Cost: 1}, {Key: key, Limit: other, Cost: 1},
				}, ds)
				return ds[0], err
			},
		} {
			for _, booked := range []int64{0, 3} {
				peek := strings.HasPrefix(name, "peek")
				key := name + texts[0] + texts[1] + string(rune('0'+booked))
				take(t, s, headgate.Request{Key: key, Limit: before, Cost: before.Capacity()})
				take(t, s, headgate.Request{Key: key, Limit: before, Cost: booked, MaxWait: time.Hour})
				state := client.Get(t.Context(), s.Name(key, before)).Val()
				d, err := ask(key)
				if err != nil || d.Allowed() {
					t.Fatalf("%s, %s: %+v, %v", texts, key, d, err)
				}
				lives := client.PTTL(t.Context(), s.Name(key, before)).Val()
				if peek != (lives < time.Minute) || !peek && lives < d.ResetAfter-time.Second || lives > longest(d.ResetAfter) {
					t.Errorf("%s, %s: lives for %s; needed for %s", texts, key, lives, d.ResetAfter)
				}
				kept := client.Get(t.Context(), s.Name(key, before)).Val()
				if kept[:len(kept)-5] != state[:len(state)-5] {
					t.Errorf("%s, %s: the state was %x, and is %x", texts, key, state, kept)
				}
				client.ConfigResetStat(t.Context())
				if _, err := ask(key); err != nil || calls(t, client, "set")+calls(t, client, "setrange") > 0 {
					t.Errorf("%s, %s: written again, error %v", texts, key, err)
				}
			}
		}
	}
}

// In virtual time, a bucket that is used up, has its numbers changed and is only denied is decided
// as in Memory, long after the expiry that the old numbers needed.
func TestChangedNumbersAsInMemory(t *testing.T) {
	redisstore.VirtualTime(t)
	client := newClient(t)
	s, memory := newStore(t, client), headgate.NewMemory()
	for _, texts := range [][2]string{
		{"10/20s", "10/10m"}, {"10/2s burst 100", "7/10m burst 33"}, {"1000/m", "1000/d"},
		{"10/20s stepped", "10/10m stepped"}, {"10/5s burst 40 stepped", "3/10m burst 5 stepped"},
	} {
		before, after := parse(t, texts[0]).Named("api"), parse(t, texts[1]).Named("api")
		l := &lifetimeOf{T: t, client: client, key: texts[0] + texts[1], now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		name := s.Name(l.key, before)
		agree := func(limit headgate.Limit, cost int64) headgate.Decision {
			l.tell()
			if !l.now.Before(l.expires) {
				client.Del(t.Context(), name)
			}
			r := headgate.Request{Key: l.key, Limit: limit, Cost: cost}
			got := take(t, s, r)
			l.expires = l.now.Add(client.PTTL(t.Context(), name).Val())
			r.At = l.now
			if want := take(t, memory, r); got != want {
				t.Errorf("%s, at %s: %+v; want %+v", texts, l.now, got, want)
			}
			return got
		}
		agree(before, before.Capacity())
		for denied := range 3 {
			d := agree(after, after.Capacity())
			if d.Allowed() {
				t.Fatalf("%s: granted after %d denials", texts, denied)
			}
			l.now = l.now.Add(d.ResetAfter / 4)
		}
	}
}
