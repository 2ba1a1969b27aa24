package headgate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Two requests of a group have one state if their keys and the IDs of their limits are equal,
// however many requests there are.
func TestRequestsOfOneState(t *testing.T) {
	bucket := headgate.PerMinute(5).Named("api")
	more := headgate.PerMinute(9).Named("api")
	window := headgate.FixedWindow(5, time.Minute).Named("api")
	for _, others := range []int{0, 14, 15, 100} {
		var rs []headgate.Request
		for i := range others {
			rs = append(rs, headgate.Request{Key: fmt.Sprint(i), Limit: bucket, Cost: 1})
		}
		rs = append(rs, headgate.Request{Key: "k", Limit: bucket, Cost: 1},
			headgate.Request{Key: "k", Limit: window, Cost: 1})
		if err := headgate.ValidateAll(rs, make([]headgate.Decision, len(rs))); err != nil {
			t.Errorf("a bucket and a window of one name beside %d others: %v", others, err)
		}
		rs[len(rs)-1].Limit = more
		err := headgate.ValidateAll(rs, make([]headgate.Decision, len(rs)))
		if err == nil || !strings.Contains(err.Error(), `"api" twice for one key`) {
			t.Errorf("two buckets of one name beside %d others: %v", others, err)
		}
	}
}
