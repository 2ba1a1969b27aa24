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

// Vectors holds the store to testdata/vectors.txt.
func Vectors(t *testing.T, s headgate.Store) {
	key, limit := "", headgate.Limit{}
	for number, line := range strings.Split(vectors, "\n") {
		line, _, _ = strings.Cut(line, "#")
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "":
		case "limit":
			key, limit = "vector "+strconv.Itoa(number+1), parse(t, rest)
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
			if got := take(t, s, r); got != want {
				t.Errorf("vectors.txt:%d: %s\n%s got  %s\nwant %s", number+1, limit, strings.TrimSpace(line), describe(got), describe(want))
			}
		}
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
	if r.Cost, err = strconv.ParseInt(f[1], 10, 64); err != nil {
		return r, d, err
	}
	if d.Remaining, err = strconv.ParseInt(f[3], 10, 64); err != nil {
		return r, d, err
	}
	if d.RetryAfter, err = parseWait(f[4]); err != nil {
		return r, d, err
	}
	if (d.RetryAfter == 0) != (f[2] == "yes") {
		return r, d, fmt.Errorf("%q: a retry after %s and the answer %s", line, f[4], f[2])
	}
	d.ResetAfter, err = parseWait(f[5])
	return r, d, err
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
	answer, retry := "no", d.RetryAfter.String()
	if d.Allowed() {
		answer = "yes"
	}
	if d.RetryAfter == headgate.Never {
		retry = "never"
	}
	return fmt.Sprintf("%s, remaining %d, retry after %s, reset after %s (%s)", answer, d.Remaining, retry, d.ResetAfter, d.Limit)
}

func show(r headgate.Request) string {
	return fmt.Sprintf("key %q, limit %s, cost %d, at %s", r.Key, r.Limit, r.Cost, r.At.Sub(epoch))
}
