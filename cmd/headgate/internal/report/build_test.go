package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// line is a request, in microseconds after 12 January 2026.
func line(micros int64, ip, path string) string {
	return encoded(map[string]any{
		"ts": json.Number(fmt.Sprintf("%d.%06d", 1768176000+micros/1e6, micros%1e6)), "ip": ip,
		"uri": path, "method": "GET", "status": 200 + len(path)%2*204,
	}) + "\n"
}

// encoded returns v as JSON.
func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: tests encode data that have a form in JSON
	}
	return string(text)
}

func traffic(requests, keys int) string {
	r := rand.New(rand.NewPCG(1, uint64(requests)))
	var log strings.Builder
	now := int64(0)
	for range requests {
		now += r.Int64N(2e6)
		log.WriteString(line(now, fmt.Sprintf("198.18.0.%d", int(r.ExpFloat64()*float64(keys)/5)), fmt.Sprintf("/%d", r.IntN(60))))
	}
	return log.String()
}

// building makes a Build of a kind that reads the same log twice.
func building(kind, log string, limits ...headgate.Limit) *Build {
	return &Build{
		Kind: kind, Command: "headgate " + kind, Made: time.Unix(1768176000, 0).UTC(), Limits: limits,
		Size: replay.SizeConfig{Reading: replay.Reading{By: replay.ByIP}},
		Logs: func(int) ([]replay.Log, error) {
			return []replay.Log{{Name: "a", Reader: strings.NewReader(log)}}, nil
		},
	}
}

func built(t *testing.T, b *Build) *Data {
	t.Helper()
	d, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Limits) != len(d.Replay.Limits) {
		t.Errorf("texts of %d limits, of %d that were replayed", len(d.Limits), len(d.Replay.Limits))
	}
	return d
}

// A size has a replay of what it proposes, which denies the same; a replay has a size at its rates.
func TestBuild(t *testing.T) {
	log := traffic(3000, 30)
	d := built(t, building(KindSize, log))
	for _, p := range d.Size.Proposals {
		i := slices.IndexFunc(d.Limits, func(l Limit) bool { return strings.Contains(l.Name, p.Name) })
		if i < 0 || !reflect.DeepEqual(p.Result, d.Replay.Limits[i]) || d.Limits[i].Limit != p.Limit.String() {
			t.Errorf("%s: sized %+v, replayed %+v", p.Name, p.Result, d.Replay.Limits[i])
		}
		if denied := d.Replay.Detail.Timeline.Denied[i]; len(denied) == 0 || d.Replay.Detail.Paths == nil {
			t.Errorf("%s: no detail", p.Name)
		}
	}
	d = built(t, building(KindReplay, log, parsed(t, "10/m burst 3"), parsed(t, "x=10/m"), parsed(t, "2/s"), parsed(t, "3/m fixed-window")))
	if got := len(d.Size.Rates); got != 2 || d.Size.Rates[0].Rate != "10/m" || d.Size.Rates[1].Rate != "2/s" {
		t.Errorf("%d rates: %+v", got, d.Size.Rates)
	}
	if d = built(t, building(KindReplay, log, parsed(t, "3/m fixed-window"))); len(d.Size.Rates) != 0 {
		t.Errorf("rates of %+v for a window", d.Size.Rates)
	}
	for _, kind := range []string{KindSize, KindReplay} {
		d := built(t, building(kind, "\n", parsed(t, "1/s")))
		text, err := json.Marshal(d)
		if err != nil || d.Replay.Detail.Timeline != nil || strings.Contains(string(text), `"limits":null`) {
			t.Errorf("of no requests: %s, %v", text, err)
		}
	}
}

// A page of proposals has each limit once, twice the limit that the keys need that do not stand out,
// and for each set of keys that stand out the limit that spares them with most reserve.
func TestBuildHasReserve(t *testing.T) {
	t.Parallel()
	d := built(t, building(KindSize, mixed()))
	var got []string
	for _, i := range d.order() {
		got = append(got, d.Limits[i].Name+" "+d.Limits[i].Limit)
	}
	rest := d.Size.StandOut.Rest.Limit
	reserve := fmt.Sprintf("reserve %s", headgate.Per(2*rest.Refill(), rest.Period()))
	if want := []string{"careful 452/m", "spare 60/m", reserve, "balanced, tight 5/m"}; !slices.Equal(got, want) {
		t.Errorf("limits %q, want %q", got, want)
	}
}

// The limit that is shown first is the one that the text of size tries: also if the reader has to
// decide about keys, and if twice the need of one of them denies the same keys.
func TestShowsTheLimitToTry(t *testing.T) {
	t.Parallel()
	var near strings.Builder // clients need 30/h, an office 45/h, all in one second, and a scanner 400/h
	for client := range 100 {
		for i := range 30 {
			near.WriteString(line(int64(client*400+2*i)*1e6, fmt.Sprintf("198.18.0.%d", client), "/"))
		}
	}
	near.WriteString(strings.Repeat(line(39990e6, "198.18.1.1", "/"), 45))
	near.WriteString(strings.Repeat(line(39990e6, "198.18.1.2", "/"), 400))
	for name, log := range map[string]string{
		"no key": traffic(3000, 30), "several": mixed(), "near": near.String(),
	} {
		d := built(t, building(KindSize, log))
		_, want := d.Size.Needed()
		var shown []string
		for _, c := range (view{d, d.answer()}).Cards() {
			if c.Shown {
				shown = append(shown, c.Limit.Limit)
			}
		}
		if !slices.Equal(shown, []string{want.String()}) {
			t.Errorf("%s: shown %q, want %s", name, shown, want)
		}
	}
}

// A log of one line, and of one key.
func TestBuildLittle(t *testing.T) {
	for _, log := range []string{line(0, "198.18.0.1", "/"), strings.Repeat(line(5e6, "198.18.0.1", "/"), 30)} {
		d := built(t, building(KindReplay, log, parsed(t, "1/s")))
		if line := d.Replay.Detail.Timeline; len(line.Requests) != 1 || line.WidthS != 1 {
			t.Errorf("%+v", line)
		}
	}
}

func TestBuildOfLogsThatChange(t *testing.T) {
	b := building(KindReplay, "", parsed(t, "1/s"))
	b.Logs = func(reading int) ([]replay.Log, error) {
		return []replay.Log{
			{Name: "a", Reader: strings.NewReader(line(1, "198.18.0.1", "/"))},
			{Name: "b", Reader: strings.NewReader(strings.Repeat(line(1, "198.18.0.1", "/"), reading))},
		}, nil
	}
	_, err := b.Run(t.Context())
	if err == nil || err.Error() != "b: changed while it was read twice for the report; run the command again" {
		t.Error(err)
	}
}

// However long names are and however many limits, keys and bars there are, the data is bounded,
// and what is shown stays exact.
func TestFit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		name             string
		limits, keys, n  int
		long, wantListed int
	}{
		{"few", 2, 20, 3000, 0, 5}, {"many keys", 3, 4000, 12_000, 20, 200},
		{"long keys", 3, 1000, 3000, 500, 100}, {"many limits", 20, 1500, 5000, 20, 50},
		{"many limits, long keys", 20, 300, 2000, 200, 20},
	} {
		var log strings.Builder
		now := int64(0)
		for range c.n {
			now += r.Int64N(2e6)
			key := r.IntN(c.keys)
			if r.IntN(2) == 0 {
				key = r.IntN(5)
			}
			log.WriteString(line(now, fmt.Sprintf("<%d%s>", key, strings.Repeat("<\u2028&", c.long)), "/<"+strings.Repeat("&", c.long)))
		}
		var limits []headgate.Limit
		for i := range c.limits {
			limits = append(limits, headgate.Per(1, time.Duration(i+1)*time.Hour))
		}
		d := built(t, building(KindReplay, log.String(), limits...))
		if _, err := d.fit(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if n := len(encoded(d)); n > MaxDataBytes {
			t.Errorf("%s: %d bytes; want at most %d", c.name, n, MaxDataBytes)
		}
		for i, l := range d.Replay.Limits {
			listed := d.Replay.Detail.Keys[i]
			if n := len(listed); n < c.wantListed || l.Denied == 0 {
				t.Errorf("%s: %d keys are listed, want at least %d", c.name, n, c.wantListed)
			}
			denied := int64(0)
			for _, n := range d.Replay.Detail.Timeline.Denied[i] {
				denied += n
			}
			if denied != l.Denied || d.Replay.Detail.DeniedKeysTotal[i] != l.DeniedKeys {
				t.Errorf("%s: %d of %d denied in bars", c.name, denied, l.Denied)
			}
		}
	}
}

func TestCut(t *testing.T) {
	for name, want := range map[string]string{
		"short": "short", strings.Repeat("ä", 100): strings.Repeat("ä", 20) + " … (200 bytes)",
		"x" + strings.Repeat("ä", 100): "x" + strings.Repeat("ä", 19) + " … (201 bytes)",
	} {
		if got := cut(name, 40); got != want {
			t.Errorf("%q is cut to %q, want %q", name, got, want)
		}
	}
	files := fitFiles(slices.Repeat([]replay.File{{Name: "a", Lines: 1}}, maxFiles+2), 100)
	if len(files) != maxFiles+1 || files[maxFiles] != (replay.File{Name: "and 2 more files", Lines: 2}) {
		t.Errorf("%+v", files)
	}
}

// The worst log and the most that a command can ask for still make a page.
func TestFitOfTheMost(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 6000 {
		who := i % 1500
		if i%2 == 0 {
			who = i % 40 // these stand out
		}
		name := fmt.Sprint(who, strings.Repeat("&", 1000))
		log.WriteString(encoded(map[string]any{
			"ts": 1768176000 + i, "ip": name, "uri": "/" + name, "method": name, "status": 200, "user_agent": fmt.Sprint(i%7, name),
		}) + "\n")
	}
	for _, limits := range []int{1, 3} {
		b := building(KindReplay, log.String())
		for i := range limits {
			b.Limits = append(b.Limits, headgate.Per(int64(i+1), 24*time.Hour))
		}
		for i := range 20 {
			b.Size.Periods = append(b.Size.Periods, time.Duration(i+1)*time.Minute)
			b.Size.Rates = append(b.Size.Rates, headgate.Per(int64(i+1), time.Hour))
		}
		logs := b.Logs
		b.Logs = func(n int) ([]replay.Log, error) {
			all, err := logs(n)
			for i := range 30 {
				name := strings.Repeat("f", 1000) + strconv.Itoa(i)
				all = append(all, replay.Log{Name: name, Reader: strings.NewReader("")})
			}
			return all, err
		}
		d := built(t, b)
		var page bytes.Buffer
		if err := Write(&page, d); err != nil || page.Len() >= 1_000_000 || len(d.Replay.Detail.Keys[0]) == 0 || len(d.Evidence()) == 0 {
			t.Errorf("%d limits: %d bytes; %d keys, %v", limits, page.Len(), len(d.Replay.Detail.Keys[0]), err)
		}
	}
}
