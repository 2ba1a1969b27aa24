package limittest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

var update = flag.Bool("update", false, "write testdata/vectors.json")

// vector is a request of vectors.json, and its answer. docs/vectors.md describes it.
type vector struct {
	Line      int    `json:"line"`
	Key       int    `json:"key"`
	Limit     string `json:"limit"`
	Algorithm string `json:"algorithm"`
	Capacity  int64  `json:"capacity"`
	Refill    int64  `json:"refill"`
	Period    int64  `json:"period_us"`
	Reset     bool   `json:"reset,omitempty"` // and nothing of what follows
	At        int64  `json:"at_us"`
	Cost      int64  `json:"cost"`
	Headroom  int64  `json:"headroom,omitempty"`
	Force     bool   `json:"force,omitempty"`
	MaxWait   int64  `json:"max_wait_us,omitempty"`
	Cancels   *int64 `json:"cancels_start_us,omitempty"`
	Answer    answer `json:"answer"`
}

type answer struct {
	Allowed    bool   `json:"allowed"`
	Remaining  int64  `json:"remaining"`
	RetryAfter *int64 `json:"retry_after_us"` // null: never
	ResetAfter *int64 `json:"reset_after_us"` // null: never
}

func micros(d time.Duration) *int64 {
	if d == headgate.Never {
		return nil
	}
	return new(d.Microseconds())
}

func waitOf(micros *int64) time.Duration {
	if micros == nil {
		return headgate.Never
	}
	return time.Duration(*micros) * time.Microsecond
}

// TestVectorsAsJSON holds vectors.json to vectors.txt.
func TestVectorsAsJSON(t *testing.T) {
	var all []vector
	v := vector{}
	for number, line := range strings.Split(vectors, "\n") {
		line, _, _ = strings.Cut(line, "#")
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		next := vector{Line: number + 1, Key: v.Key, Limit: v.Limit, Algorithm: v.Algorithm, Capacity: v.Capacity, Refill: v.Refill, Period: v.Period}
		switch word {
		case "":
			continue
		case "limit", "change":
			if word == "limit" {
				v.Key = number + 1
			}
			l := parse(t, rest)
			v.Limit, v.Algorithm, v.Capacity, v.Refill, v.Period = rest, l.Algorithm().String(), l.Capacity(), l.Refill(), l.Period().Microseconds()
			continue
		case "reset":
			next.Reset = true
		default:
			r, want, err := parseVector(line)
			if err != nil {
				t.Fatal(err)
			}
			next.At, next.Cost, next.Headroom, next.Force, next.MaxWait = r.At.Sub(epoch).Microseconds(), r.Cost, r.Headroom, r.Force, r.MaxWait.Microseconds()
			if r.Start != nil {
				next.Cancels = new(r.Start.Sub(epoch).Microseconds())
			}
			next.Answer = answer{want.RetryAfter <= r.MaxWait, want.Remaining, micros(want.RetryAfter), micros(want.ResetAfter)}
		}
		all = append(all, next)
	}
	var text bytes.Buffer
	text.WriteString("[\n")
	for i, v := range all {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(line)
		if i < len(all)-1 {
			text.WriteString(",")
		}
		text.WriteString("\n")
	}
	text.WriteString("]\n")
	if *update {
		if err := os.WriteFile("testdata/vectors.json", text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("testdata/vectors.json")
	if err != nil || !bytes.Equal(got, text.Bytes()) {
		t.Errorf("testdata/vectors.json differs; go test -run TestVectorsAsJSON -update writes it anew: %v", err)
	}
}

// A port proves itself as this test does: by the file alone.
func TestVectorsOfTheFile(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 200 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	redis, err := redisstore.Open(redistest.Start(t).URL() + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	for name, store := range map[string]headgate.Store{"memory": headgate.NewMemory(), "redis": redis} {
		t.Run(name, func(t *testing.T) {
			for _, v := range all {
				decide(t, store, v)
			}
		})
	}
}

func decide(t *testing.T, store headgate.Store, v vector) {
	t.Helper()
	l, err := headgate.ParseLimit(v.Limit)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
	r := headgate.Request{
		Key: "json " + strconv.Itoa(v.Key), Limit: l, Cost: v.Cost, Headroom: v.Headroom, Force: v.Force,
		MaxWait: time.Duration(v.MaxWait) * time.Microsecond, At: start.Add(time.Duration(v.At) * time.Microsecond),
	}
	if v.Reset {
		if err := store.Reset(t.Context(), r.Key, l); err != nil {
			t.Fatal(err)
		}
		return
	}
	if v.Cancels != nil {
		r.Start = new(start.Add(waitOf(v.Cancels)))
	}
	d, err := store.Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if d.Within(r.MaxWait) != v.Answer.Allowed || d.Remaining != v.Answer.Remaining ||
		d.RetryAfter != waitOf(v.Answer.RetryAfter) || d.ResetAfter != waitOf(v.Answer.ResetAfter) {
		t.Errorf("line %d: %s, want %+v", v.Line, describe(d), v.Answer)
	}
}
