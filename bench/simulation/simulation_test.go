package simulation

import (
	"bytes"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

var docs = flag.String("docs", "", "simulate an hour of 1,000 instances, and three regions, and write about it into this `directory`")

// hour is what the docs tell about, brief is for every change.
var (
	hour  = plan{seed: 1, instances: 1000, keys: 10000, homes: 4, rate: 2000, length: time.Hour, life: 10 * time.Minute, calm: time.Minute}
	brief = plan{seed: 1, instances: 100, keys: 1000, homes: 4, rate: 1000, length: 2 * time.Minute, life: time.Minute, calm: 10 * time.Second}
)

func TestSimulation(t *testing.T) {
	p := brief
	if *docs != "" {
		p = hour
	}
	if testing.Short() {
		p.length /= 2
	}
	few := simulate(t, p)
	p.homes = 0
	anywhere := simulate(t, p)
	few.holds(t)
	anywhere.holds(t)
	few.paid(t)

	var text bytes.Buffer
	if err := writePage(&text, few, anywhere); err != nil {
		t.Fatal(err)
	}
	svg, err := few.picture()
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(svg, new(struct{})); err != nil {
		t.Errorf("the picture: %v", err)
	}
	if *docs != "" {
		write(t, "simulation.md", text.Bytes())
		write(t, "simulation.svg", svg)
	}
	isPage(t, "simulation.md", text.String())
}

func simulate(t *testing.T, p plan) (f *fleet) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if f, err = newFleet(p); err != nil {
			t.Fatal(err)
		}
		f.run(t.Context())
	})
	return f
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(*docs, name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// holds checks what must be true of every run.
func (f *fleet) holds(t *testing.T) {
	t.Helper()
	for _, k := range f.byRank {
		if k.over > 0 {
			t.Errorf("%s under %s: %d tokens over", k.key, k.limit, k.over)
		}
		if k.granted < k.could*95/100 {
			t.Errorf("%s under %s: %d tokens were granted, %d would have been by one limiter", k.key, k.limit, k.granted, k.could)
		}
		if k.asked < 16 && k.calls != k.asked { // it was never hot
			t.Errorf("%s: %d calls for %d requests", k.key, k.calls, k.asked)
		}
	}
	s := f.summary()
	if sum := s.ByLease + s.ByDenyCache + s.ByStore + s.Unanswered; s.Asked != sum {
		t.Errorf("%d requests; %d were decided or not answered", s.Asked, sum)
	}
	if s.Pressed == 0 || s.Deaths == 0 || s.Partitions == 0 || s.Unanswered == 0 {
		t.Errorf("no key was at its limit, or nothing befell anybody: %+v", s)
	}
	if s.Granted < s.Could*97/100 {
		t.Errorf("%d tokens were granted, %d would have been by one limiter", s.Granted, s.Could)
	}
}

// paid checks that all that a fleet may do was done, and that it saved calls.
func (f *fleet) paid(t *testing.T) {
	t.Helper()
	s := f.summary()
	if s.ByLease == 0 || s.ByDenyCache == 0 || s.Prefetches == 0 || s.Drains == 0 || s.Waste == 0 {
		t.Errorf("something was never done: %+v", s)
	}
	if s.Calls > s.Asked*4/5 {
		t.Errorf("%d calls for %d requests", s.Calls, s.Asked)
	}
}
