package envoy

import (
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
)

// TestSlots: the slots of a descriptor are where it is counted, in its store, and a reset of them is
// noticed by the local cache once they are forgotten.
func TestSlots(t *testing.T) { synctest.Test(t, slots) }

func slots(t *testing.T) {
	store, second := headgate.NewMemorySize(1000), headgate.NewMemorySize(1000)
	f := newFixtureWith(t, store, second, Options{LocalCacheBytes: 1 << 20}, twoLimits)
	for _, text := range []string{"b=x|y", "sec=1", "text=a=b"} {
		d := desc(text)
		f.ask(d)
		f.ask(d)
		if got := codes(f.ask(d)); got[:4] != "over" {
			t.Fatalf("%s: %s", text, got)
		}
		key := DescriptorText(string(appendKey(nil, "d", &d, nil)))
		used := 0
		for _, s := range f.Slots("d/any", key) {
			now, err := s.Store.Take(t.Context(), headgate.Request{Key: s.Key, Limit: s.Limit})
			if err != nil {
				t.Fatal(err)
			}
			if now.ResetAfter > 0 {
				used++
			}
			if isSecond := s.Store == headgate.Store(second); isSecond != (s.window == 1) {
				t.Errorf("a window of %d seconds is in the other store", s.window)
			}
			if err := s.Store.Reset(t.Context(), s.Key, s.Limit); err != nil {
				t.Fatal(err)
			}
			f.Forget(s)
		}
		if used != 1 {
			t.Errorf("%s: %d slots are used, want 1", text, used)
		}
		if got := codes(f.ask(d)); got[:2] != "ok" {
			t.Errorf("%s, after the reset: %s", text, got)
		}
	}
	if slots := f.Slots("other/any", "b=1"); slots != nil {
		t.Errorf("a domain that does not exist has %v", slots)
	}
	if slots := New(store, nil, Options{}, &Statistics{}).Slots("d/any", "b=1"); slots != nil {
		t.Errorf("without a configuration, there are %v", slots)
	}
}
