package simulation

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"text/template"
	"time"

	"github.com/headgate/headgate"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// words writes large numbers as people read them.
var words = message.NewPrinter(language.English)

//go:embed simulation.md.tmpl
var pageText string

// page is docs/simulation.md. Every figure in it is one of a run, or of its plan.
var page = template.Must(template.New("simulation").Funcs(template.FuncMap{
	"n":       func(n int64) string { return words.Sprintf("%d", n) },
	"percent": func(n, of int64) string { return fmt.Sprintf("%.1f%%", percent(n, of)) },
	"exactly": func(n, of int64) string { return fmt.Sprintf("%.2f%%", percent(n, of)) },
	"minutes": func(d time.Duration) string { return words.Sprintf("%.0f min", d.Minutes()) },
	"less":    func(a, b int64) int64 { return a - b },
}).Parse(pageText))

// writePage writes the page about two runs: in one the requests of a key go to few instances, in
// the other to any.
func writePage(w io.Writer, few, anywhere *fleet) error {
	return page.Execute(w, map[string]summary{"Few": few.summary(), "Any": anywhere.summary()})
}

// summary is what is reported of a run.
type summary struct {
	Instances, Keys, Homes, Rate int64
	Length, Life, Calm           time.Duration
	Zipf, Fraction               float64
	TTL                          time.Duration
	TableKeys                    int64
	Bucket, Window               headgate.Limit

	Asked, ByLease, ByDenyCache, ByStore, Unanswered int64 // requests
	Calls, Takes, Prefetches, Drains                 int64 // calls
	Granted, Could, Waste                            int64 // tokens
	// Keys: over the bound, at 95% of it or more at their fullest, refused at all.
	Over, Pressed, Refused int64
	Deaths, Partitions     int64
	Rows                   []row
}

// row holds the results of the key of a rank.
type row struct {
	Rank                         int64
	Limit                        headgate.Limit
	Asked, Calls, Granted, Could int64
	Waste, Short, Capacity       int64
}

// told are the ranks that have a row.
var told = []int{1, 2, 3, 5, 8, 15, 50, 100}

func (f *fleet) summary() summary {
	c := &f.counts
	s := summary{
		Instances: int64(f.instances), Keys: int64(f.keys), Homes: int64(f.homes),
		Rate: int64(f.rate), Length: f.length, Life: f.life, Calm: f.calm,
		Zipf: zipf, Fraction: fraction, TTL: ttl, TableKeys: tableKeys,
		Bucket: f.byRank[0].limit, Window: f.byRank[1].limit,
		ByLease: c.byLease.Load(), ByDenyCache: c.byDenyCache.Load(), ByStore: c.byStore.Load(),
		Unanswered: c.unanswered.Load(),
		Takes:      c.takes.Load(), Prefetches: c.prefetches.Load(), Drains: c.drains.Load(),
		Deaths: c.deaths.Load(), Partitions: c.partitions.Load(),
	}
	for r, k := range f.byRank {
		s.count(k)
		if slices.Contains(told, r+1) {
			s.Rows = append(s.Rows, row{
				Rank: int64(r + 1), Limit: k.limit, Asked: k.asked, Calls: k.calls,
				Granted: k.granted, Could: k.could, Waste: k.waste,
				Short: max(k.short, 0), Capacity: k.limit.Capacity(),
			})
		}
	}
	return s
}

// count adds k to the sums.
func (s *summary) count(k *ledger) {
	s.Asked, s.Calls = s.Asked+k.asked, s.Calls+k.calls
	s.Granted, s.Could, s.Waste = s.Granted+k.granted, s.Could+k.could, s.Waste+k.waste
	for n, is := range map[*int64]bool{
		&s.Over: k.over > 0, &s.Pressed: k.fill() >= 95, &s.Refused: k.refused > 0,
	} {
		if is {
			*n++
		}
	}
}
