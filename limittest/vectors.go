package limittest

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

//go:embed testdata/vectors.txt
var vectors string

// Vectors compares the store with testdata/vectors.txt.
func Vectors(t *testing.T, s headgate.Store) {
	key, limit := "", headgate.Limit{}
	books, skip := books(t, s), false // skip is set from the first booking of a key on
	for number, line := range strings.Split(vectors, "\n") {
		line, _, _ = strings.Cut(line, "#")
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "":
		case "limit":
			skip, key, limit = false, "vector "+strconv.Itoa(number+1), parse(t, rest)
		case "change":
			limit = parse(t, rest)
		case "reset":
			if err := s.Reset(t.Context(), key, limit); err != nil {
				t.Fatal(err)
			}
		default:
			r, want, err := parseVector(line)
			if err != nil {
				t.Fatalf("vectors.txt:%d: %v", number+1, err)
			}
			r.Key, r.Limit, want.Limit = key, limit, limit
			if skip = skip || r.MaxWait > 0 && !books; !skip {
				checkVector(t, s, number+1, r, want)
			}
		}
	}
}

func checkVector(
	t *testing.T, s headgate.Store, line int, r headgate.Request, want headgate.Decision,
) {
	t.Helper()
	if r.MaxWait > 0 {
		r.Start = new(time.Time)
	}
	got := take(t, s, r)
	if got != want {
		t.Errorf("vectors.txt:%d: %s\n got  %s\n want %s", line, show(r), describe(got),
			describe(want))
	}
	if r.MaxWait > 0 && got.Within(r.MaxWait) && got.RetryAfter > 0 &&
		!r.Start.Equal(r.At.Add(got.RetryAfter)) {
		t.Errorf("vectors.txt:%d: %s\n start %s, retry after %s", line, show(r), r.Start,
			got.RetryAfter)
	}
}

func parseVector(line string) (r headgate.Request, d headgate.Decision, err error) {
	f := strings.Fields(line)
	if len(f) != 6 || (f[2] != "yes" && f[2] != "no") {
		return r, d, fmt.Errorf("%q: want time, cost, yes or no, remaining, retry, reset", line)
	}
	at, err := time.ParseDuration(f[0])
	if err != nil {
		return r, d, err
	}
	r.At = epoch.Add(at)
	if err = parseCost(f[1], &r); err != nil {
		return r, d, err
	}
	if d.Remaining, err = strconv.ParseInt(f[3], 10, 64); err != nil {
		return r, d, err
	}
	if d.RetryAfter, err = parseWait(f[4]); err != nil {
		return r, d, err
	}
	if (d.RetryAfter <= r.MaxWait) != (f[2] == "yes") {
		return r, d, fmt.Errorf("%q: a retry after %s and the answer %s", line, f[4], f[2])
	}
	d.ResetAfter, err = parseWait(f[5])
	return r, d, err
}

// parseCost reads "cost", "cost!", "cost+headroom", "cost~wait" or "cost@start".
func parseCost(text string, r *headgate.Request) (err error) {
	text, headroom, leaves := strings.Cut(text, "+")
	if leaves {
		if r.Headroom, err = strconv.ParseInt(headroom, 10, 64); err != nil {
			return err
		}
	}
	cost, start, cancels := strings.Cut(text, "@")
	cost, wait, books := strings.Cut(cost, "~")
	cost, _, r.Force = strings.Cut(cost, "!")
	if r.Cost, err = strconv.ParseInt(cost, 10, 64); err != nil {
		return err
	}
	if cancels {
		after, err := time.ParseDuration(start)
		r.Start = new(epoch.Add(after))
		return err
	}
	if books {
		r.MaxWait, err = time.ParseDuration(wait)
	}
	return err
}

func parseWait(s string) (time.Duration, error) {
	switch s {
	case "-":
		return 0, nil
	case "never":
		return headgate.Never, nil
	}
	return time.ParseDuration(s)
}

func describe(d headgate.Decision) string {
	retry := d.RetryAfter.String()
	if d.RetryAfter == headgate.Never {
		retry = "never"
	}
	return fmt.Sprintf("remaining %d, retry after %s, reset after %s (%s)", d.Remaining, retry,
		d.ResetAfter, d.Limit)
}

func show(r headgate.Request) string {
	text := fmt.Sprintf("key %q, limit %s, cost %d, at %s", r.Key, r.Limit, r.Cost, r.At.Sub(epoch))
	if r.Force {
		text += ", forced"
	}
	if r.MaxWait > 0 {
		text += fmt.Sprintf(", max wait %s", r.MaxWait)
	}
	if r.Headroom != 0 {
		text += fmt.Sprintf(", headroom %d", r.Headroom)
	}
	if r.Start != nil && !r.Start.IsZero() {
		text += fmt.Sprintf(", start %s", r.Start.Sub(epoch))
	}
	return text
}
