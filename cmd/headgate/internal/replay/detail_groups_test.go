package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// More names than there is room for: what is listed is exact, and nothing is lost.
func TestGroupsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := newGroups(64)
	requests, denied := map[string]int64{}, map[string]int64{}
	total := int64(0)
	type held struct {
		id   uint32
		name string
	}
	var queue []held
	for i := range 30_000 {
		name := fmt.Sprintf("/%d", int(r.ExpFloat64()*40))
		if i > 20_000 && r.IntN(3) == 0 {
			name = "/late" // dropped names must not keep it out
		}
		if r.IntN(5) == 0 {
			name = fmt.Sprintf("/once/%d", i)
		}
		queue = append(queue, held{g.hold([]byte(name)), name})
		if len(queue) > 20 {
			h := queue[0]
			queue = queue[1:]
			d := r.IntN(4) == 0
			g.add(h.id, []bool{d})
			requests[h.name]++
			if d {
				denied[h.name]++
				total++
			}
		}
	}
	if len(g.all) > 64 || len(g.ids) > 64 {
		t.Fatalf("%d groups of %d names, want at most 64", len(g.all), len(g.ids))
	}
	list := g.list([]int64{total})
	var listed, listedDenied, exact int64
	for _, k := range list {
		listed += k.Requests
		listedDenied += k.Denied[0]
		if k.Name == "(other)" {
			continue
		}
		exact++
		if k.Requests != requests[string(k.Name)] || k.Denied[0] != denied[string(k.Name)] {
			t.Errorf("%s: %d of %d denied, want %d of %d", k.Name, k.Denied[0], k.Requests,
				denied[string(k.Name)], requests[string(k.Name)])
		}
	}
	if listed != 30_000-20 || listedDenied != total {
		t.Errorf("%d of %d denied, want %d of %d", listedDenied, listed, total, 30_000-20)
	}
	if exact < 10 || list[0].Name != "/late" {
		t.Errorf("%d names, the first %q; want more, and /late", exact, list[0].Name)
	}
}

// Groups that are all held make way for none.
func TestGroupsHeld(t *testing.T) {
	g := newGroups(4)
	a, b, c := g.hold([]byte("a")), g.hold([]byte("b")), g.hold([]byte("c"))
	if a == b || a <= none || b <= none || c != other {
		t.Errorf("numbers %d, %d, %d; want two, and other", a, b, c)
	}
	g.add(a, nil)
	if d := g.hold([]byte("d")); d != a {
		t.Errorf("the number is %d, want the free %d", d, a)
	}
	if again := g.hold([]byte("a")); again != other {
		t.Errorf("a name that was dropped has number %d, want other", again)
	}
	for name, want := range map[string]uint32{"": none, "(none)": none, "(other)": other} {
		if got := g.hold([]byte(name)); got != want {
			t.Errorf("%q has number %d, want %d", name, got, want)
		}
	}
}

func TestGroupNamesAreCut(t *testing.T) {
	g := newGroups(100)
	long := strings.Repeat("x", longestName-1)
	for name, want := range map[string]string{
		long + "y":                   long + "y",
		long + "yz":                  long + "y…",
		long + "äz":                  long + "…",
		long + "\xff":                long + "\xff",
		strings.Repeat("\x80", 2000): strings.Repeat("\x80", longestName-4) + "…",
	} {
		if got := g.all[g.hold([]byte(name))].name; got != want {
			t.Errorf("%q is cut to %q, want %q", name[500:], got[500:], want[500:])
		}
	}
}

// Each format has its place for method, path and status.
func TestDetailFacets(t *testing.T) {
	limit := ByIP
	const clf = `198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] `
	for _, c := range []struct{ name, log, want string }{
		{"combined", clf + `"GET /a?b HTTP/1.1" 404 5 "-" "curl/8"`, "/a,GET,404"},
		{"common", clf + `"GET /a HTTP/1.1" 200 -`, "/a,GET,200"},
		{"bare quote", clf + `"GET /a"b HTTP/1.0" 301 5 "-" "x"`, `/a"b,GET,301`},
		{"no request", clf + `"-" 408 0`, "null,null,408"},
		{"no status", clf + `"GET /a HTTP/1.1"`, "/a,GET,null"},
		{"cut off", clf, "null,null,null"},
		{"nginx", `{"ts":1765962181,"ip":"198.18.0.1","request":"GET /a?b HTTP/1.1","status":"404"}`, "/a,GET,404"},
		{"Caddy", `{"ts":1765962181.5,"request":{"remote_ip":"198.18.0.1","method":"GET","uri":"/a"},"status":200}`, "/a,GET,200"},
		{"Envoy", `{"start_time":"2025-12-17T09:03:01.000Z","method":"GET","path":"/a","response_code":429,"downstream_remote_address":"198.18.0.1:1"}`, "/a,GET,429"},
		{"Traefik", `{"ClientHost":"198.18.0.1","RequestMethod":"GET","RequestPath":"/a","StartUTC":"2025-12-17T09:03:01.5Z","OriginStatus":500,"DownstreamStatus":502}`, "/a,GET,502"},
		{"Elastic Common Schema", `{"@timestamp":"2025-12-17T09:03:01Z","client":{"ip":"198.18.0.1"},"http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"path":"/a"}}`, "/a,GET,200"},
		{"the same, flat", `{"@timestamp":"2025-12-17T09:03:01Z","client.ip":"198.18.0.1","http.request.method":"GET","url.path":"/a","http.response.status_code":200}`, "/a,GET,200"},
		{"Google Cloud", `{"timestamp":"2025-12-17T09:03:01Z","httpRequest":{"remoteIp":"198.18.0.1","requestMethod":"GET","requestUrl":"https://x.org/a","status":200}}`, "/a,GET,200"},
		{"Cloudflare", `{"EdgeStartTimestamp":1765962181000000000,"ClientIP":"198.18.0.1","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeResponseStatus":200,"OriginResponseStatus":0}`, "/a,GET,200"},
		{"pino", `{"time":1765962181000,"req":{"method":"GET","url":"/a","remoteAddress":"198.18.0.1"},"res":{"statusCode":200,"headers":{"status":"no"}},"msg":"done"}`, "/a,GET,200"},
		{"fluentd", `{"host":"198.18.0.1","method":"GET","path":"/a","code":200,"time":"17/Dec/2025:09:03:01 +0000"}`, "/a,GET,200"},
		{"a status that is none", `{"ts":1765962181,"ip":"198.18.0.1","status":"ok","code":"ECONN"}`, "null,null,null"},
	} {
		for _, log := range []string{c.log, c.log + "\n" + c.log[strings.LastIndexByte(c.log, '\n')+1:]} {
			f := newFacets()
			used := 0
			_, err := read(t.Context(), Reading{By: limit, Reorder: time.Second}, sink{
				names: newKeyIDs(), facets: f,
				use: func(r record) error { used++; f.add(r.facets, nil); return nil },
			}, []Log{{Name: "a", Reader: strings.NewReader(log)}})
			if err != nil || used == 0 {
				t.Fatalf("%s: %d requests, %v", c.name, used, err)
			}
			var got []string
			for _, g := range []*groups{f.paths, f.methods, f.statuses} {
				name := "null"
				for _, k := range g.list(nil) {
					name = string(k.Name)
					if k.Requests != int64(used) {
						t.Errorf("%s: %+v of %d requests", c.name, k, used)
					}
				}
				got = append(got, name)
			}
			if g := strings.Join(got, ","); g != c.want {
				t.Errorf("%s: %s, want %s", c.name, g, c.want)
			}
		}
	}
}
