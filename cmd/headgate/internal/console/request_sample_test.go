package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
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
			l.add(at.Add(time.Duration(second)*time.Second), key, q, false)
		}
	}
	if len(l.ring) != keptRequests {
		t.Errorf("%d requests are kept", len(l.ring))
	}
	for i := range 5 { // 13 places of a second are free again
		l.add(at.Add(time.Hour), "ip:bot", &rules.Request{Method: "GET", Path: fmt.Sprint("/", i)}, true)
	}
	l.add(at.Add(2*time.Hour), "ip:bot", &rules.Request{Path: strings.Repeat("ü", 500), Header: http.Header{}}, true)
	keys := []deniedKey{{Key: "ip:bot"}, {Key: "ip:none"}}
	l.seen(keys)
	s := keys[0].Seen.shown()
	if keys[1].Seen != nil || s.Requests != 52 || s.Methods["POST"] != 46 || s.Agents["bot/1"] != 46 || s.Permits != 6 ||
		len(s.Paths) != shownTexts || s.Paths["/login"] != 46 {
		t.Errorf("%+v, %+v", s, keys[1].Seen)
	}
	for _, r := range l.ring {
		if len(r.path) > maxText {
			t.Errorf("%d bytes are kept", len(r.path))
		}
	}
}

// What instances have seen adds up, and many paths are shown by their beginnings.
func TestJoinRequests(t *testing.T) {
	seen := func(n int, texts ...string) *requestsSeen {
		s := newSeen()
		s.Requests = n
		for i, text := range texts {
			s.Methods["GET"]++
			s.Paths[text]++
			s.Agents["x"]++
			s.Clients[fmt.Sprint("192.0.2.", n+i)]++
		}
		return s
	}
	a, b := seen(2, "/a/1", "/b"), seen(3, "/b", "/a/2", "/c/1/2", "/d", "/e")
	var none *requestsSeen
	if none.join(a) != a || a.join(nil) != a || none.shown() != nil {
		t.Error("joined with none")
	}
	sum := a.join(b).shown()
	if sum.Requests != 5 || sum.Methods["GET"] != 7 || a.Paths["/b"] != 1 ||
		!maps.Equal(sum.Paths, map[string]int{"/a/*": 2, "/b": 2, "/c/*": 1}) ||
		sum.Kinds != (texts{Paths: 6, Agents: 1, Clients: 6}) || len(sum.Clients) != shownTexts {
		t.Errorf("%+v of %+v", sum, a)
	}
}

// A trusted proxy makes an address of X-Forwarded-For the client; what others send has no effect.
func TestForwarded(t *testing.T) {
	client := netip.MustParseAddr("192.0.2.1")
	for fields, want := range map[string]string{
		"": "", "192.0.2.1": "", "192.0.2.1, 10.0.0.1": "", "10.9.9.9, 192.0.2.7": "192.0.2.7",
	} {
		q := &rules.Request{Client: client, Header: http.Header{"X-Forwarded-For": {fields}}}
		if got := forwarded(q); got != want {
			t.Errorf("%q: %q, want %q", fields, got, want)
		}
	}
}
