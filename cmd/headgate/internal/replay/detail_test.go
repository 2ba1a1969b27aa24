package replay_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

func detailed(t *testing.T, c replay.Config, texts ...string) *replay.Report {
	t.Helper()
	c.Detail, c.Reorder, c.Top = true, usual.Reorder, usual.Top
	report, err := replay.Run(t.Context(), c, logsOf(texts...)...)
	if err != nil {
		t.Fatal(err)
	}
	mustAddUp(t, report)
	return report
}

// decided is a request of a log with what each limit decided.
type decided struct {
	at                        int64
	key, path, method, status string
	denied                    []bool
}

// mustAddUp checks that all parts of a Detail add up to the counts of its report.
func mustAddUp(t *testing.T, r *replay.Report) {
	t.Helper()
	d := r.Detail
	same := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	if d.Timeline == nil {
		same("requests without a timeline", r.Requests, 0)
		return
	}
	same("bars", sum(d.Timeline.Requests), r.Requests)
	for _, groups := range [][]replay.Group{d.Paths, d.Methods, d.Statuses} {
		requests := int64(0)
		for _, g := range groups {
			requests += g.Requests
		}
		if groups != nil {
			same("requests of groups", requests, r.Requests)
		}
	}
	for i, l := range r.Limits {
		same("denied in bars", sum(d.Timeline.Denied[i]), l.Denied)
		same("denied keys", d.DeniedKeysTotal[i], l.DeniedKeys)
		for _, groups := range [][]replay.Group{d.Paths, d.Methods, d.Statuses} {
			denied := int64(0)
			for _, g := range groups {
				denied += g.Denied[i]
			}
			if groups != nil {
				same("denied of groups", denied, l.Denied)
			}
		}
		for j, top := range l.Top {
			k := d.Keys[i][j]
			if k.Key != top.Key || k.Denied != top.Denied || k.Requests != top.Requests {
				t.Errorf("key %d is %+v, of the report %+v", j, k, top)
			}
		}
	}
}

func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// recount makes a Detail from its definition, slowly.
func recount(all []decided, limits int) *replay.Detail {
	d := &replay.Detail{
		Timeline: recountBars(all, limits), Keys: [][]replay.DeniedKey{},
		Paths:    recountGroups(all, limits, func(r decided) string { return r.path }),
		Methods:  recountGroups(all, limits, func(r decided) string { return r.method }),
		Statuses: recountGroups(all, limits, func(r decided) string { return r.status }),
	}
	for i := range limits {
		keys := recountKeys(all, i)
		d.DeniedKeysTotal = append(d.DeniedKeysTotal, int64(len(keys)))
		d.Keys = append(d.Keys, keys[:min(len(keys), 1000)])
	}
	return d
}

func recountBars(all []decided, limits int) *replay.DetailTimeline {
	from, to := all[0].at/1e6, all[len(all)-1].at/1e6
	for _, minutes := range []float64{
		1. / 60, 2. / 60, 5. / 60, 10. / 60, 15. / 60, 30. / 60, 1, 2, 5, 10, 15, 30,
		60, 120, 180, 360, 720, 24 * 60, 7 * 24 * 60, 14 * 24 * 60, 28 * 24 * 60, 56 * 24 * 60,
	} {
		width := int64(minutes*60 + 0.5)
		n := to/width - from/width + 1
		if n > min(500, 1500/int64(limits)) {
			continue
		}
		line := &replay.DetailTimeline{
			From: time.Unix(from/width*width, 0).UTC(), WidthS: width, Requests: make([]int64, n),
		}
		for range limits {
			line.Denied = append(line.Denied, make([]int64, n))
		}
		for _, r := range all {
			bar := r.at/1e6/width - from/width
			line.Requests[bar]++
			for i, denied := range r.denied {
				if denied {
					line.Denied[i][bar]++
				}
			}
		}
		return line
	}
	panic("no width")
}

func recountKeys(all []decided, limit int) []replay.DeniedKey {
	keys := map[string]*replay.DeniedKey{}
	for _, r := range all {
		if keys[r.key] != nil {
			continue
		}
		k := &replay.DeniedKey{Key: replay.LogKey(r.key)}
		keys[r.key] = k
		for j, o := range all {
			if o.key != r.key {
				continue
			}
			k.Requests++
			if !o.denied[limit] {
				continue
			}
			k.Denied++
			if k.Last = time.UnixMicro(o.at).UTC(); k.First.IsZero() {
				k.First = k.Last
			}
			k.DeniedRunS = max(k.DeniedRunS, float64(deniedUntil(all[j:], limit)-o.at)/1e6)
		}
	}
	list := []replay.DeniedKey{}
	for _, k := range keys {
		if k.Denied > 0 {
			list = append(list, *k)
		}
	}
	slices.SortFunc(list, func(a, b replay.DeniedKey) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// deniedUntil returns the last denial of the key of the first request before its next grant.
func deniedUntil(all []decided, limit int) (end int64) {
	for _, next := range all {
		if next.key == all[0].key && !next.denied[limit] {
			break
		}
		if next.key == all[0].key {
			end = next.at
		}
	}
	return end
}

// A client that is denied for ten seconds and comes back after three days was not locked out for
// three days.
func TestDetailLockout(t *testing.T) {
	var log strings.Builder
	for _, second := range []int64{0, 10, 20, 3 * 86400} {
		log.WriteString(at((1768176000+second)*1e6, "x"))
	}
	k := detailed(t, config(t, "ip", "1/m"), log.String()).Detail.Keys[0][0]
	if k.DeniedRunS != 10 || k.RetryAfterS != 40 {
		t.Errorf("%+v, want denials for 10 s, and a retry 40 s later", k)
	}
}

func recountGroups(all []decided, limits int, name func(decided) string) []replay.Group {
	groups := map[string]*replay.Group{}
	totals := make([]int64, limits)
	for _, r := range all {
		n := cmp.Or(name(r), "(none)")
		if groups[n] == nil {
			groups[n] = &replay.Group{Name: replay.LogKey(n), Denied: make([]int64, limits)}
		}
		groups[n].Requests++
		for i, denied := range r.denied {
			if denied {
				groups[n].Denied[i]++
				totals[i]++
			}
		}
	}
	if len(groups) == 1 && groups["(none)"] != nil {
		return nil
	}
	score := func(g *replay.Group) (s float64) {
		for i, n := range g.Denied {
			if n > 0 {
				s += float64(n) / float64(totals[i])
			}
		}
		return s
	}
	sorted := slices.SortedFunc(maps.Values(groups), func(a, b *replay.Group) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	list := []replay.Group{}
	rest := replay.Group{Name: "(other)", Denied: make([]int64, limits)}
	for i, g := range sorted {
		if i < replay.DetailGroups {
			list = append(list, *g)
			continue
		}
		rest.Requests += g.Requests
		for j, n := range g.Denied {
			rest.Denied[j] += n
		}
	}
	if rest.Requests > 0 {
		list = append(list, rest)
	}
	return list
}

// scenario is a random log, and its requests as decided by the definitions of the limits.
func scenario(r *rand.Rand, requests, keys, paths int, step int64, rules []func() rule) (string, []decided) {
	var log strings.Builder
	var all []decided
	now := int64(1768176000_000000) + r.Int64N(90e6)
	for range requests {
		if r.IntN(4) == 0 {
			now += r.Int64N(step)
		}
		d := decided{
			at: now, key: fmt.Sprintf("198.18.0.%d", int(r.ExpFloat64()*float64(keys)/4)),
			path: fmt.Sprintf("/p%d", int(r.ExpFloat64()*float64(paths)/6)), method: []string{"GET", "POST", ""}[r.IntN(3)],
			status: []string{"200", "404", "503"}[r.IntN(3)],
		}
		fmt.Fprintf(&log, `{"ts":%d.%06d,"ip":"%s","method":"%s","uri":"%s?q=1","status":%s}`+"\n",
			now/1e6, now%1e6, d.key, d.method, d.path, d.status)
		all = append(all, d)
	}
	for _, newRule := range rules {
		own := map[string]rule{}
		for i := range all {
			if own[all[i].key] == nil {
				own[all[i].key] = newRule()
			}
			all[i].denied = append(all[i].denied, !own[all[i].key](all[i].at))
		}
	}
	return log.String(), all
}

// The Detail of random logs is what its definition says.
func TestDetailByDefinition(t *testing.T) {
	limits := []string{"6/m burst 3", "2/10s fixed-window", "20/h sliding-log", "api=5/m sliding-window", "1000000/s"}
	rules := []func() rule{
		func() rule { return naiveBucket(6, 3, time.Minute) },
		func() rule { return naiveFixed(2, 10*time.Second) },
		func() rule { return naiveLog(20, time.Hour) },
		func() rule { return naiveWindow(5, time.Minute) },
		func() rule { return func(int64) bool { return true } },
	}
	r := rand.New(rand.NewPCG(21, 22))
	for round, c := range []struct {
		requests, keys, paths int
		step                  int64
	}{
		{1, 1, 1, 1e6}, {300, 1, 3, 2e6}, {900, 30, 400, 20e6}, {700, 9, 60, 100e6}, {600, 5, 9, 9000e6}, {400, 3, 2, 40e9},
	} {
		log, all := scenario(r, c.requests, c.keys, c.paths, c.step, rules)
		report := detailed(t, config(t, "ip", limits...), log)
		for _, keys := range report.Detail.Keys {
			for i := range keys {
				keys[i].RetryAfterS = 0 // TestDetailLockout has it
			}
		}
		mustBeSameDetail(t, round, report.Detail, recount(all, len(limits)))
	}
}

func naiveFixed(n int64, window time.Duration) rule {
	grants := map[int64]int64{}
	return func(now int64) bool {
		w := now / window.Microseconds()
		if grants[w] == n {
			return false
		}
		grants[w]++
		return true
	}
}

func mustBeSameDetail(t *testing.T, round int, got, want *replay.Detail) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	a, err := json.Marshal(got)
	b, err2 := json.Marshal(want)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			from := max(i-300, 0)
			t.Fatalf("round %d: got …%s\nwant …%s", round, a[from:min(i+100, len(a))], b[from:min(i+100, len(b))])
		}
	}
	t.Fatalf("round %d: got %s\nwant %s", round, a, b)
}

// Times with the zones of summer and winter are one line of time; lines in no order, and lines that
// are too late, are counted at the time at which they are decided.
func TestDetailClocks(t *testing.T) {
	const form = "%s - - [26/Oct/2025:%02d:%02d:00 %s] \"GET / HTTP/1.1\" 200 5\n"
	var summer, jumps strings.Builder
	for i := range 240 { // from 01:00 to 02:59 in summer time, and again from 02:00 in winter time
		hour, zone := 1+i/60, "+0200"
		if i >= 120 {
			hour, zone = i/60, "+0100"
		}
		fmt.Fprintf(&summer, form, "198.18.0.1", hour, i%60, zone)
	}
	report := detailed(t, config(t, "ip", "30/h", "1/d"), summer.String())
	line := report.Detail.Timeline
	if from := time.Date(2025, 10, 25, 23, 0, 0, 0, time.UTC); !line.From.Equal(from) || line.WidthS != 30 || len(line.Requests) != 239*2+1 {
		t.Errorf("%d bars of %d s from %s", len(line.Requests), line.WidthS, line.From)
	}
	for i, n := range line.Requests {
		if want := int64(1); n != want && i%2 == 0 || n != 0 && i%2 != 0 {
			t.Errorf("bar %d has %d requests", i, n)
		}
	}
	want := replay.DeniedKey{
		Key: "198.18.0.1", Requests: 240, Denied: 239, DeniedRunS: 238 * 60, RetryAfterS: 72060,
		First: time.Date(2025, 10, 25, 23, 1, 0, 0, time.UTC), Last: time.Date(2025, 10, 26, 2, 59, 0, 0, time.UTC),
	}
	if got := report.Detail.Keys[1][0]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r := rand.New(rand.NewPCG(9, 10))
	for i := range int64(600) {
		jumps.WriteString(at((i+3600*int64(r.IntN(30)/29)-r.Int64N(20))*1e6, fmt.Sprint(r.IntN(3))))
	}
	if report = detailed(t, config(t, "ip", "3/m", "10/h sliding-log"), jumps.String()); report.Late == 0 {
		t.Error("no request is late, so that this proves nothing")
	}
	for i, keys := range report.Detail.Keys {
		for _, k := range keys {
			if k.First.After(k.Last) || k.First.Before(report.Span.From) || k.Last.After(report.Span.To) || k.DeniedRunS < 0 {
				t.Errorf("limit %d: %+v is outside of %+v", i, k, report.Span)
			}
		}
	}
}

// A broken log has the details of its good lines; one without any denial has empty lists.
func TestDetailBroken(t *testing.T) {
	log := line("198.18.0.1", 1) + "nonsense\n" + "\xff\n" + line("-", 2) + line("198.18.0.1", 3)[:70]
	report := detailed(t, config(t, "ip", "1/h", "9/h"), log)
	if d := report.Detail; report.Skipped != 3 || d.Keys[0][0].Denied != 1 || len(d.Paths) != 1 || d.Paths[0].Requests != 2 {
		t.Errorf("%+v", report)
	}
	text, err := json.Marshal(report.Detail)
	for _, want := range []string{`,[]],"denied_keys_total":[1,0],"paths":[{"name":"/a","requests":2,"denied":[1,0]}]`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
	}
	if d := detailed(t, config(t, "ip", "1/h"), "\n").Detail; d.Timeline != nil || d.Paths != nil || len(d.Keys[0]) != 0 {
		t.Errorf("of no request: %+v", d)
	}
}

// A timeline is as fine as the number of bars allows, whatever the span.
func TestDetailWidths(t *testing.T) {
	const day = 86400
	for _, c := range []struct {
		limits      int
		span, width int64
	}{
		{1, 0, 1}, {1, 499, 1}, {2, 500, 2}, {1, 999, 2}, {1, 2499, 5}, {1, 4999, 10}, {1, 7499, 15}, {1, 14999, 30}, {1, 15000, 60},
		{1, 7*day + 1, 1800}, {1, 30 * day, 2 * 3600}, {1, 365 * day, day}, {1, 499 * day, day}, {1, 500 * day, 7 * day}, {1, 20000 * day, 56 * day},
		{4, 374, 1}, {4, 375, 2}, {20, 74, 1}, {20, 75, 2}, {20, 365 * day, 7 * day},
	} {
		var log strings.Builder
		for _, s := range []int64{0, c.span / 3, c.span / 3, c.span / 2, c.span} {
			fmt.Fprintf(&log, `{"ts":%d,"ip":"198.18.0.1"}`+"\n", 28*day*600+s)
		}
		report := detailed(t, replay.Config{Limits: slices.Repeat([]headgate.Limit{headgate.PerHour(1)}, c.limits)}, log.String())
		line := report.Detail.Timeline
		if line.WidthS != c.width || int64(len(line.Requests)) != c.span/c.width+1 {
			t.Errorf("a span of %d s: %d bars of %d s, want of %d", c.span, len(line.Requests), line.WidthS, c.width)
		}
	}
}

// Each format has its place for method, path and status.
func TestDetailFacets(t *testing.T) {
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
		d := detailed(t, config(t, "ip", "1/m"), strings.Repeat(c.log+"\n", 2)).Detail
		var got []string
		for _, groups := range [][]replay.Group{d.Paths, d.Methods, d.Statuses} {
			name := "null"
			for _, g := range groups {
				name = string(g.Name)
			}
			got = append(got, name)
		}
		if g := strings.Join(got, ","); g != c.want {
			t.Errorf("%s: %s, want %s", c.name, g, c.want)
		}
	}
}
