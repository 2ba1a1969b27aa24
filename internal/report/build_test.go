package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/replay"
)

// line is a request, in microseconds after 12 January 2026.
func line(micros int64, ip, path string) string {
	text, _ := json.Marshal(map[string]any{
		"ts": json.Number(fmt.Sprintf("%d.%06d", 1768176000+micros/1e6, micros%1e6)), "ip": ip,
		"uri": path, "method": "GET", "status": 200 + len(path)%2*204,
	})
	return string(text) + "\n"
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
	for i, p := range d.Size.Proposals {
		if !reflect.DeepEqual(p.Result, d.Replay.Limits[i]) || d.Limits[i].Name != p.Name {
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
	for _, p := range d.Size.Rates[0].Curve {
		if p.Size == 3 && p.Denied != d.Replay.Limits[0].Denied {
			t.Errorf("the curve has %d denied, the replay %d", p.Denied, d.Replay.Limits[0].Denied)
		}
	}
	if d = built(t, building(KindReplay, log, parsed(t, "3/m fixed-window"))); len(d.Size.Rates) != 0 {
		t.Errorf("curves of %+v for a window", d.Size.Rates)
	}
	for _, kind := range []string{KindSize, KindReplay} {
		d := built(t, building(kind, "\n", parsed(t, "1/s")))
		text, err := json.Marshal(d)
		if err != nil || d.Replay.Detail.Timeline != nil || strings.Contains(string(text), `"limits":null`) {
			t.Errorf("of no requests: %s, %v", text, err)
		}
	}
}

// A log of one line, and of one key.
func TestBuildLittle(t *testing.T) {
	for _, log := range []string{line(0, "198.18.0.1", "/"), strings.Repeat(line(5e6, "198.18.0.1", "/"), 30)} {
		for _, b := range []*Build{building(KindSize, log), building(KindReplay, log, parsed(t, "1/s"))} {
			d := built(t, b)
			if line := d.Replay.Detail.Timeline; len(line.Requests) != 1 || line.WidthS != 1 {
				t.Errorf("%s: %+v", b.Kind, line)
			}
		}
	}
}

func TestBuildOfLogsThatChange(t *testing.T) {
	b := building(KindSize, "")
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
		before, _ := json.Marshal(d)
		fitted, err := d.Fit()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		after, _ := json.Marshal(d)
		text, err := json.Marshal(fitted)
		if err != nil || len(text) > MaxDataBytes {
			t.Errorf("%s: %d bytes, %v; want at most %d", c.name, len(text), err, MaxDataBytes)
		}
		if string(before) != string(after) {
			t.Errorf("%s: the data was changed", c.name)
		}
		t.Logf("%s: %d of %d bytes, %d keys, %d bars", c.name, len(text), len(before), len(fitted.Replay.Detail.Keys[0]), len(fitted.Replay.Detail.Timeline.Requests))
		for i, l := range fitted.Replay.Limits {
			listed := fitted.Replay.Detail.Keys[i]
			if n := len(listed); n < c.wantListed || l.Denied == 0 {
				t.Errorf("%s: %d keys are listed, want at least %d", c.name, n, c.wantListed)
			}
			denied, key := int64(0), int64(0)
			for _, n := range fitted.Replay.Detail.Timeline.Denied[i] {
				denied += n
			}
			for _, b := range fitted.Replay.Detail.KeyTimelines[i][0].Denied {
				key += b[1]
			}
			if denied != l.Denied || key != listed[0].Denied || fitted.Replay.Detail.DeniedKeysTotal[i] != l.DeniedKeys {
				t.Errorf("%s: %d of %d denied in bars, %d of %d of the first key", c.name, denied, l.Denied, key, listed[0].Denied)
			}
		}
	}
}

func TestCut(t *testing.T) {
	for name, want := range map[string]string{
		"short": "short", strings.Repeat("ä", 100): strings.Repeat("ä", 20) + " … (200 bytes)",
		"x" + strings.Repeat("ä", 100): "x" + strings.Repeat("ä", 19) + " … (201 bytes)",
	} {
		key := replay.Key(name)
		if cut(&key, 40); string(key) != want {
			t.Errorf("%q is cut to %q, want %q", name, key, want)
		}
	}
	files := fitFiles([]replay.File{{Name: "a", Lines: 1}, {Name: "b", Lines: 2}, {Name: "c", Lines: 3}}, 1)
	if len(files) != 2 || files[1] != (replay.File{Name: "and 2 more files", Lines: 5}) {
		t.Errorf("%+v", files)
	}
}
