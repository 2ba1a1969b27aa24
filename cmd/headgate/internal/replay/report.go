package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// Traffic is what logs hold. Lines is Requests plus Skipped.
type Traffic struct {
	Files          []File `json:"files"`
	By             By     `json:"by"`
	Lines          int64  `json:"lines"`
	Requests       int64  `json:"requests"`
	Keys           int64  `json:"keys"`
	Skipped        int64  `json:"skipped"`
	SkippedReasons []Skip `json:"skipped_reasons"` // the most frequent first
	Late           int64  `json:"late"`            // requests decided later than recorded
	Span           *Span  `json:"span"`            // nil without requests
	Peak           *Peak  `json:"peak"`            // nil without requests
	Proxy          string `json:"-"`               // a client that may be one; or nothing
}

// Report is the result of a replay.
type Report struct {
	Traffic

	Limits []Result `json:"limits"`           // in the order of Config.Limits
	Detail *Detail  `json:"detail,omitempty"` // if Config.Detail is set
}

// File is one of the logs.
type File struct {
	Name   string `json:"name"`
	Format Format `json:"format"` // zero if no line could be read
	Lines  int64  `json:"lines"`
}

// Skip is a reason why lines were not replayed.
type Skip struct {
	Reason    string `json:"reason"`
	Lines     int64  `json:"lines"`
	File      string `json:"file"`       // the first log with such a line,
	FirstLine int64  `json:"first_line"` // and the first such line in it

	unread bool   // the lines may be requests that were not understood
	help   string // what that line has, and which option may help
}

// text says where the first line is, and what would help.
func (k *Skip) text() string {
	switch {
	case k.help == "":
		return fmt.Sprintf("line %d: %s", k.FirstLine, k.Reason)
	case k.Reason == whyUnknown:
		return fmt.Sprintf("line %d %s", k.FirstLine, k.help)
	}
	return fmt.Sprintf("line %d: %s; it %s", k.FirstLine, k.Reason, k.help)
}

// empty reports whether the lines hold nothing by design.
func (k *Skip) empty() bool { return k.Reason == whyBlank || k.Reason == whyComment }

// Unreadable returns an error if so many lines could not be read that the report means nothing.
func (r *Traffic) Unreadable() error {
	lines, unread := r.Lines, int64(0)
	var first *Skip
	for i := range r.SkippedReasons {
		switch k := &r.SkippedReasons[i]; {
		case k.empty():
			lines -= k.Lines
		case k.unread:
			unread += k.Lines
			first = cmp.Or(first, k)
		}
	}
	if 100*unread <= lines {
		return nil
	}
	return fmt.Errorf("%d of %d lines could not be read: do not trust these numbers; %s: %s; "+
		"or remove such lines, for example by grep",
		unread, lines, first.File, first.text())
}

// Span is the time from the first request to the last.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Peak is the second with the most requests, the first of several.
type Peak struct {
	At       time.Time `json:"at"`
	Requests int64     `json:"requests"`
}

// Result is the result of one limit. Numbers that are the same for all limits are in each, so
// that a Result can be read by itself.
type Result struct {
	Limit      headgate.Limit `json:"limit"`
	Requests   int64          `json:"requests"`
	Allowed    int64          `json:"allowed"`
	Denied     int64          `json:"denied"`
	Keys       int64          `json:"keys"`
	DeniedKeys int64          `json:"denied_keys"` // keys that were denied at least once
	Skipped    int64          `json:"skipped"`     // lines of the logs that were not replayed
	Top        []TopDenied    `json:"top"`         // the most denied first, then by key
}

// TopDenied is one of the keys that a limit denied most.
type TopDenied struct {
	Key      LogKey  `json:"key"`
	Requests int64   `json:"requests"` // of this key
	Denied   int64   `json:"denied"`   // of those
	Share    float64 `json:"share"`    // of all that the limit denied, from 0 to 1
}

// LogKey is a key from a log. It may hold any bytes.
type LogKey string

// MarshalText writes bytes that are not UTF-8 as \xNN, so that different keys stay different.
func (k LogKey) MarshalText() ([]byte, error) { return []byte(validText(string(k))), nil }

func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b = append(b, `\x`...)
			b = append(b, strconv.FormatUint(uint64(s[0])|0x100, 16)[1:]...)
		} else {
			b = append(b, s[:n]...)
		}
		s = s[n:]
	}
	return string(b)
}

func (t *tally) report(c Config, sources []*source) (*Report, error) {
	traffic, err := t.traffic(c.By, sources)
	if err != nil {
		return nil, err
	}
	r := &Report{Traffic: traffic}
	for _, l := range t.trials {
		numbers := Result{
			Limit: l.limit, Denied: l.total, DeniedKeys: l.keys, Skipped: r.Skipped,
		}
		r.Limits = append(r.Limits, t.result(numbers, c.Top, l.deniedKeys))
	}
	return r, nil
}

// traffic returns what the logs hold.
func (t *count) traffic(by By, sources []*source) (Traffic, error) {
	r := Traffic{Files: []File{}, By: by, Requests: t.requests, Keys: int64(len(t.asked))}
	for _, s := range sources {
		r.Files = append(r.Files, File{s.name, s.format, s.lines.number})
		r.Lines += s.lines.number
		r.Late += s.order.late
		if 20*s.others >= probed-s.probe { // few are what clients send themselves
			r.Proxy = cmp.Or(r.Proxy, s.proxy)
		}
	}
	r.SkippedReasons = mergeSkips(sources)
	for _, k := range r.SkippedReasons {
		r.Skipped += k.Lines
	}
	if r.Requests > 0 {
		r.Span = &Span{time.UnixMicro(t.from).UTC(), time.UnixMicro(t.to).UTC()}
		r.Peak = &t.peak
		return r, nil
	}
	return r, nothingUsed(r.SkippedReasons)
}

// nothingUsed returns an error if no line could be replayed: a report of 0 denied would look
// as if the limit was fine.
func nothingUsed(skips []Skip) error {
	for _, k := range skips {
		if !k.empty() {
			return fmt.Errorf("%s: no line can be replayed; %s", k.File, k.text())
		}
	}
	return nil
}

// mergeSkips adds up the reasons of all logs, the most frequent first.
func mergeSkips(sources []*source) []Skip {
	merged := []Skip{}
	for _, s := range sources {
		for _, k := range s.skips {
			i := slices.IndexFunc(merged, func(m Skip) bool { return m.Reason == k.Reason })
			if i < 0 {
				merged = append(merged, *k)
			} else {
				merged[i].Lines += k.Lines
			}
		}
	}
	slices.SortFunc(merged, func(a, b Skip) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Reason, b.Reason))
	})
	return merged
}
