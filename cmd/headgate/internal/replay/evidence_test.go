package replay_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// Evidence counts what a key asked for, in every format, and only for the keys that are wanted.
func TestEvidence(t *testing.T) {
	combined := strings.Repeat(`198.18.0.1 - - [12/Jan/2026:00:00:00 +0000] "GET /a?q=1 HTTP/1.1" 200 5 "-" "curl/8"`+"\n", 3) +
		`198.18.0.1 - - [12/Jan/2026:00:00:01 +0000] "PROPFIND /b HTTP/1.1" 404 5 "-" "-"` + "\n" +
		`198.18.0.2 - - [12/Jan/2026:00:00:01 +0000] "POST /c HTTP/1.1" 500 5 "-" "wget"` + "\n"
	object := strings.Repeat(`{"ts":1768176000,"ip":"198.18.0.1","method":"GET","uri":"/a","status":200,"user_agent":"curl/8"}`+"\n", 3) +
		`{"ts":1768176000,"ip":"198.18.0.1","method":"PROPFIND","uri":"/b","status":404}` + "\n" +
		`{"ts":1768176000,"ip":"198.18.0.2","method":"POST","uri":"/c","status":500}` + "\n"
	list := func(one, many string, top ...replay.NameCount) replay.AskedFor {
		return replay.AskedFor{Kind: [2]string{one, many}, Top: top, Names: int64(len(top))}
	}
	want := []replay.Evidence{{Denied: []int64{3}, Asked: []replay.AskedFor{
		list("path", "paths", replay.NameCount{Name: "/a", Requests: 3}, replay.NameCount{Name: "/b", Requests: 1}),
		list("method", "methods", replay.NameCount{Name: "GET", Requests: 3}, replay.NameCount{Name: "PROPFIND", Requests: 1}),
		list("status", "statuses", replay.NameCount{Name: "200", Requests: 3}, replay.NameCount{Name: "404", Requests: 1}),
		list("user agent", "user agents", replay.NameCount{Name: "curl/8", Requests: 3}),
	}}}
	for _, log := range []string{combined, object} {
		c := config(t, "ip", "1/m")
		c.Evidence = []replay.LogKey{"198.18.0.1"}
		if got := detailed(t, c, log).Detail.Evidence; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// A name that is cut ends in a mark. Two with the same beginning are one.
func TestEvidenceMarksWhatIsCut(t *testing.T) {
	var log strings.Builder
	for _, n := range []int{159, 160, 160, 300} {
		fmt.Fprintf(&log, `{"ts":1768176000,"ip":"198.18.0.1","uri":"/%s"}`+"\n", strings.Repeat("a", n))
	}
	c := config(t, "ip", "1/m")
	c.Evidence = []replay.LogKey{"198.18.0.1"}
	top := detailed(t, c, log.String()).Detail.Evidence[0].Asked[0].Top
	whole := "/" + strings.Repeat("a", 159)
	want := []replay.NameCount{{Name: replay.LogKey(whole + "…"), Requests: 3}, {Name: replay.LogKey(whole), Requests: 1}}
	if !reflect.DeepEqual(top, want) {
		t.Errorf("%+v, want %+v", top, want)
	}
}

// Names that have no room are counted, and said to be missing.
func TestEvidenceIsBounded(t *testing.T) {
	var log strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&log, `{"ts":1768176000,"ip":"198.18.0.1","uri":"/%d"}`+"\n", i)
	}
	c := config(t, "ip", "1/m")
	c.Evidence = []replay.LogKey{"198.18.0.1"}
	e := detailed(t, c, log.String()).Detail.Evidence[0].Asked[0]
	if len(e.Top) != 3 || e.Names != 1<<14 || e.Unlisted != 20_000-1<<14 {
		t.Errorf("%+v", e)
	}
}
