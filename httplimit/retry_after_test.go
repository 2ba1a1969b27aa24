package httplimit

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/pause"
)

// answeredAt is the time of the answers of these tests, by their Date.
var answeredAt = time.Date(2026, 11, 21, 8, 49, 37, 0, time.UTC)

func fields(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestRequestedPause(t *testing.T) {
	const date = "Date: Sat, 21 Nov 2026 08:49:37 GMT"
	for _, c := range []struct {
		name   string
		status int
		fields string // one or more
		want   string
	}{
		{"nothing", 429, "", "0s"},
		{"seconds", 429, "Retry-After: 30", "30s"},
		// net/http would have taken them off
		{"spaces around it", 429, "Retry-After:  30 ", "30s"},
		{"none", 429, "Retry-After: 0", "0s"},
		{"less than none", 429, "Retry-After: -30", "0s"},
		{"a plus", 429, "Retry-After: +30", "0s"},
		{"decimals, as Shopify sends them", 429, "Retry-After: 2.0", "2s"},
		{"decimals are rounded up", 429, "Retry-After: 299.997", "5m0s"},
		{"a millisecond", 429, "Retry-After: 0.001", "1s"},
		{"none, in decimals", 429, "Retry-After: 0.00", "0s"},
		{"two points", 429, "Retry-After: 1.2.3", "0s"},
		{"two values in one line", 429, "Retry-After: 0,120", "0s"},
		{"milliseconds, as Azure sends them", 429, "Retry-After-Ms: 1500 | Retry-After: 2", "1.5s"},
		{"a day in milliseconds", 429, "Retry-After-Ms: 86400000", "24h0m0s"},
		{"decimals of milliseconds", 429, "Retry-After-Ms: 12.5", "13ms"},
		{"milliseconds that cannot be read", 429, "Retry-After-Ms: soon | Retry-After: 2", "2s"},
		{"no milliseconds", 429, "Retry-After-Ms: 0 | Retry-After: 2", "2s"},
		{"milliseconds of a success", 200, "Retry-After-Ms: 1500", "0s"},
		{"junk", 429, "Retry-After: soon", "0s"},
		{"a number and junk", 429, "Retry-After: 30s", "0s"},
		{"a point", 429, "Retry-After: 30.", "0s"},
		{"an exponent", 429, "Retry-After: 3e1", "0s"},
		{"more than can be", 429, "Retry-After: 99999999999999999999999999", "8760h0m0s"},
		{"the first of two", 429, "Retry-After: 30 | Retry-After: 60", "30s"},
		{"a date", 429, date + " | Retry-After: Sat, 21 Nov 2026 08:50:07 GMT", "30s"},
		{"a date of RFC 850", 429, date + " | Retry-After: Saturday, 21-Nov-26 08:50:07 GMT",
			"30s"},
		{"a date of asctime", 429, date + " | Retry-After: Sat Nov 21 08:50:07 2026", "30s"},
		{"a date in UTC", 429, date + " | Retry-After: Sat, 21 Nov 2026 08:50:07 UTC", "30s"},
		{"a date with an offset", 429, date + " | Retry-After: Sat, 21 Nov 2026 08:50:07 +0000",
			"30s"},
		{"a date with another offset", 429,
			date + " | Retry-After: Sat, 21 Nov 2026 09:50:07 +0100", "30s"},
		{"a Date in UTC", 429,
			"Date: Sat, 21 Nov 2026 08:49:37 UTC | Retry-After: Sat, 21 Nov 2026 08:50:07 GMT",
			"30s"},
		{"a date far ahead", 429, date + " | Retry-After: Sat, 01 Nov 2070 00:00:00 GMT",
			"8760h0m0s"},
		{"a date that has passed", 429, date + " | Retry-After: Sat, 21 Nov 2026 08:49:07 GMT",
			"0s"},
		// our clock is 10 s ahead, and some
		{"a date without a Date", 429, "Retry-After: Sat, 21 Nov 2026 08:50:17 GMT",
			"30s"},
		{"a date that is none", 429, date + " | Retry-After: Sat, 31 Feb 2026 08:50:07 GMT",
			"0s"},
		{"a Date that is none", 429, "Date: today | Retry-After: Sat, 21 Nov 2026 08:50:17 GMT",
			"30s"},

		{"not available", 503, "Retry-After: 30", "30s"},
		{"forbidden, as GitHub says it", 403, "Retry-After: 60", "1m0s"},
		{"too large", 413, "Retry-After: 30", "30s"},
		{"a redirect", 302, "Retry-After: 30", "30s"},
		{"success", 200, "Retry-After: 30", "0s"},
		{"a result to come", 202, "Retry-After: 30", "0s"},

		{"RateLimit", 200, `RateLimit: "default";r=0;t=30`, "30s"},
		{"something remains", 200, `RateLimit: "default";r=1;t=30`, "0s"},
		{"for how long is not told", 200, `RateLimit: "default";r=0`, "0s"},
		{"what remains is not told", 200, `RateLimit: "default";t=30`, "0s"},
		{"several limits", 200, `RateLimit: "a";r=0;t=5, "b";r=9;t=3600 , "c";r=0;t=7`, "7s"},
		{"several lines", 200, `RateLimit: "a";r=0;t=5 | RateLimit: "c";r=0;t=7`, "7s"},
		{"spaces and a partition", 200, "RateLimit: \t\"a\" ; r=0;\tt=5;pk=:cHsdsRa894==:", "5s"},
		{"the order does not matter", 200, `RateLimit: "a";t=5;pk=:YQ==:;r=0`, "5s"},
		{"the last one counts", 200, `RateLimit: "a";r=0;t=5;t=6`, "6s"},
		{"a token for a name", 200, `RateLimit: default;r=0;t=30`, "30s"},
		{"a name with separators", 200, `RateLimit: "a;r=0;t=99,b\"";r=0;t=5`, "5s"},
		{"a parameter with separators", 200, `RateLimit: "a";x=";r=0, \"b\";r=0;t=99";r=3;t=5`,
			"0s"},
		{"no name", 200, `RateLimit: ;r=0;t=30`, "30s"},
		{"an open quote", 200, `RateLimit: "a;r=0;t=30`, "30s"},
		{"a number for a name", 200, `RateLimit: 5;r=0;t=30`, "30s"},
		{"a dictionary", 200, `RateLimit: limit=10, remaining=0, reset=30`, "0s"},
		{"one that cannot be read between others", 200, `RateLimit: "a";r=0;t=5, ((, "b";r=0;t=6`,
			"6s"},
		{"negative", 200, `RateLimit: "a";r=0;t=-5`, "0s"},
		{"decimals in RateLimit", 200, `RateLimit: "a";r=0.0;t=1.5`, "2s"},
		{"a part of a request remains", 200, `RateLimit: "a";r=0.5;t=30`, "0s"},
		{"empty", 200, `RateLimit:  | RateLimit: ,,`, "0s"},

		{"draft 7", 429, "RateLimit: limit=5, remaining=0, reset=30", "30s"},
		{"draft 7 of a success", 200, "RateLimit: limit=5, remaining=0, reset=30", "0s"},
		{"draft 7, not available", 503, "RateLimit: limit=5,remaining=0,reset=30", "30s"},
		{"draft 7, another limit refused", 429, "RateLimit: limit=5, remaining=4, reset=30", "0s"},
		{"draft 7 without what remains", 429, "RateLimit: limit=5, reset=30", "30s"},
		{"draft 6", 429, "RateLimit-Limit: 5 | RateLimit-Remaining: 0 | RateLimit-Reset: 30",
			"30s"},
		{"draft 6 of a success", 200, "RateLimit-Remaining: 0 | RateLimit-Reset: 30",
			"0s"},
		{"draft 6, not found", 404, "RateLimit-Remaining: 0 | RateLimit-Reset: 30",
			"0s"},
		{"draft 6, another limit refused", 429, "RateLimit-Remaining: 15 | RateLimit-Reset: 40",
			"0s"},
		{"draft 6, but Retry-After", 429,
			"Retry-After: 20 | RateLimit-Remaining: 15 | RateLimit-Reset: 40", "20s"},
		{"draft 6, at once", 429, "RateLimit-Remaining: 0 | RateLimit-Reset: 0", "0s"},
		{"draft 6, junk", 429, "RateLimit-Remaining: none | RateLimit-Reset: soon",
			"0s"},
		{"a Unix time, as DigitalOcean sends it", 429,
			date + " | RateLimit-Remaining: 0 | RateLimit-Reset: 1795250997", "20s"},
		{"a Unix time that has passed", 429,
			date + " | RateLimit-Remaining: 0 | RateLimit-Reset: 1795250900", "0s"},
		{"a Unix time in milliseconds", 429,
			date + " | RateLimit-Remaining: 0 | RateLimit-Reset: 1795250997000", "0s"},

		{"Retry-After goes first", 429, `Retry-After: 5 | RateLimit: "a";r=0;t=30`, "5s"},
		{"but not if it says nothing", 429, `Retry-After: 0 | RateLimit: "a";r=0;t=30`, "30s"},
		{"X-RateLimit does not count", 429, "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 60",
			"0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := answeredAt.Add(10*time.Second + 700*time.Millisecond)
			if got := requestedPause(c.status, fields(strings.Split(c.fields, " | ")...),
				now); got.String() != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

// Whatever a server sends, the pause is between none and a year, in milliseconds; what our
// own fields say is read as it was meant.
func FuzzRequestedPause(f *testing.F) {
	for _, s := range []string{"", "30", "0.5", "Sat, 21 Nov 2026 08:50:07 GMT", `"a";r=0;t=30`,
		`"a\";r=0`, `a;r=0;t="5", b`, "1795251007000", "99999999999999999999", "-1", `";";,;=`} {
		f.Add(s, s, int64(30))
	}
	f.Fuzz(func(t *testing.T, retry, item string, seconds int64) {
		h := fields("Retry-After: "+retry, "RateLimit: "+item, "RateLimit-Reset: "+retry,
			"Retry-After-Ms: "+item)
		for _, status := range []int{200, 429} {
			d := requestedPause(status, h, answeredAt)
			if d < 0 || d > pause.Longest || d%time.Millisecond != 0 {
				t.Errorf("%v: %s", h, d)
			}
		}
		if seconds < 0 || seconds > 1e6 {
			return
		}
		ours := appendInteger([]byte(`"a;r=5,\"", "b";r=0;t=`), seconds)
		h = fields("RateLimit: "+string(ours), "Retry-After: "+strconv.FormatInt(seconds, 10))
		for _, status := range []int{200, 429} {
			if d := requestedPause(status, h, answeredAt); d != time.Duration(seconds)*time.Second {
				t.Errorf("%s: %s", ours, d)
			}
		}
	})
}
