package console

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// At most 10 requests of a second are noted, the last 64 are kept, and long texts are cut.
func TestDeniedRequests(t *testing.T) {
	var l requestSample
	at := time.Unix(1_800_000_000, 0)
	q := &rules.Request{Method: "POST", Path: "/login", Header: http.Header{"User-Agent": {"bot/1"}}}
	for second := range 10 {
		for i := range 50 {
			key := "ip:bot"
			if i%5 == 4 {
				key = "ip:other"
			}
			l.add(at.Add(time.Duration(second)*time.Second), key, q)
		}
	}
	if len(l.ring) != keptRequests {
		t.Errorf("%d requests are kept", len(l.ring))
	}
	for i := range 5 { // 13 places of a second are free again
		l.add(at.Add(time.Hour), "ip:bot", &rules.Request{Method: "GET", Path: fmt.Sprint("/", i)})
	}
	l.add(at.Add(2*time.Hour), "ip:bot", &rules.Request{Path: strings.Repeat("ü", 500), Header: http.Header{}})
	keys := []deniedKey{{Key: "ip:bot"}, {Key: "ip:none"}}
	l.seen(keys)
	s := keys[0].Seen
	if keys[1].Seen != nil || s.Requests != 52 || s.Methods["POST"] != 46 || s.Agents["bot/1"] != 46 ||
		len(s.Paths) != shownTexts || s.Paths["/login"] != 46 {
		t.Errorf("%+v, %+v", s, keys[1].Seen)
	}
	for _, r := range l.ring {
		if len(r.path) > maxText {
			t.Errorf("%d bytes are kept", len(r.path))
		}
	}
}

// What instances have seen adds up.
func TestJoinRequests(t *testing.T) {
	a := &requestsSeen{2, map[string]int{"GET": 2}, map[string]int{"/a": 1, "/b": 1}, map[string]int{"x": 2}}
	b := &requestsSeen{3, map[string]int{"GET": 1, "PUT": 2}, map[string]int{"/b": 2, "/c": 1}, map[string]int{"y": 3}}
	var none *requestsSeen
	if none.join(a) != a || a.join(nil) != a {
		t.Error("joined with none")
	}
	sum := a.join(b)
	if sum.Requests != 5 || !maps.Equal(sum.Methods, map[string]int{"GET": 3, "PUT": 2}) ||
		!maps.Equal(sum.Paths, map[string]int{"/a": 1, "/b": 3, "/c": 1}) || a.Paths["/b"] != 1 {
		t.Errorf("%+v of %+v", sum, a)
	}
}
