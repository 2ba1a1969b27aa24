package cli

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// A share of clients that is --max-denied is within it, and one client more is above.
func TestMaxDeniedIsExact(t *testing.T) {
	for _, keys := range []int64{1, 92, 1000, 10_000, 1_000_000} {
		for hundredths := range int64(10_001) { // of a percent
			if hundredths*keys%10_000 != 0 {
				continue
			}
			f := reviewFlags{after: []string{"new"}, before: []string{"old"}}
			f.maxDenied = fmt.Sprintf("%d.%02d%%", hundredths/100, hundredths%100)
			most, err := f.check(newReplay(nil))
			if err != nil {
				t.Fatal(err)
			}
			r := reviewed{Review: &replay.Review{}, MaxDenied: most}
			r.Keys, r.MoreClients = keys, hundredths*keys/10_000
			within := !r.above()
			r.MoreClients++
			if !within || !r.above() {
				t.Errorf("%s of %d: %v, and with one more %v", f.maxDenied, keys, within, !r.above())
			}
		}
	}
}
