package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// If the numbers of a limit change, the key lives for as long as the new ones need, even if all
// requests are denied. Nothing else of its state is written, and that once. A peek writes nothing.
func TestChangedNumbersProlong(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	yearFrom := func(days int) string {
		return "10/year anchor " + time.Now().UTC().AddDate(0, 0, days).Format("01-02")
	}
	for _, texts := range [][2]string{
		{"10/20s", "10/10m"}, {"10/20s", "3/10m burst 5"}, {"10/2s burst 100", "10/10m"},
		{"10/20s stepped", "10/10m stepped"}, {"10/5s burst 40 stepped", "3/10m burst 5 stepped"},
		{yearFrom(2), yearFrom(-2)},
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
				return s.Take(t.Context(),
					headgate.Request{Key: key, Limit: after, Cost: 1, MaxWait: time.Millisecond})
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
				take(t, s,
					headgate.Request{Key: key, Limit: before, Cost: booked, MaxWait: time.Hour})
				state := client.Get(t.Context(), s.Name(key, before)).Val()
				d, err := ask(key)
				if err != nil || d.Allowed() {
					t.Fatalf("%s, %s: %+v, %v", texts, key, d, err)
				}
				lives := client.PTTL(t.Context(), s.Name(key, before)).Val()
				if peek != (lives < d.ResetAfter/2) || !peek && lives < d.ResetAfter-time.Second ||
					lives > longest(d.ResetAfter) {
					t.Errorf("%s, %s: lives for %s; needed for %s", texts, key, lives, d.ResetAfter)
				}
				kept := client.Get(t.Context(), s.Name(key, before)).Val()
				if kept[:len(kept)-5] != state[:len(state)-5] {
					t.Errorf("%s, %s: the state was %x, and is %x", texts, key, state, kept)
				}
				client.ConfigResetStat(t.Context())
				if _, err := ask(key); err != nil ||
					calls(t, client, "set")+calls(t, client, "setrange") > 0 {
					t.Errorf("%s, %s: written again, error %v", texts, key, err)
				}
			}
		}
	}
}
