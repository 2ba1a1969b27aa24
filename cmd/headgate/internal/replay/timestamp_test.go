package replay

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"17/Dec/2025:09:03:01 +0000", "2025-12-17T09:03:01Z"},
		{"17/DEC/2025:09:03:01 +0000", "2025-12-17T09:03:01Z"},
		{"17/Dec/2025:09:03:01 -0400", "2025-12-17T13:03:01Z"},
		{"01/Jan/2026:03:00:00 +0800", "2025-12-31T19:00:00Z"},
		{"29/Feb/2024:23:59:59 +0530", "2024-02-29T18:29:59Z"},
		{"17/Dec/2025:09:03:01", "2025-12-17T09:03:01Z"},
		{"17/Dec/2025:09:03:01.25 +0000", "2025-12-17T09:03:01.25Z"},
		{"31/Dec/2016:23:59:60 +0000", "2017-01-01T00:00:00Z"}, // a leap second
		{"2025-12-17T09:03:01Z", "2025-12-17T09:03:01Z"},
		{"2025-12-17T09:03:01+00:00", "2025-12-17T09:03:01Z"},
		{"2025-12-17T09:03:01.1234567-04:00", "2025-12-17T13:03:01.123456Z"},
		{"2025-12-17 09:03:01,123", "2025-12-17T09:03:01.123Z"},
		{"2025-12-17 09:03:01.5 +0200", "2025-12-17T07:03:01.5Z"},
		{"2025/12/17 09:03:01", "2025-12-17T09:03:01Z"},
		{"1765962181", "2025-12-17T09:03:01Z"},
		{"1765962181.000123", "2025-12-17T09:03:01.000123Z"},
		{"1765962181123", "2025-12-17T09:03:01.123Z"},
		{"1765962181123456", "2025-12-17T09:03:01.123456Z"},
		{"1765962181123456789", "2025-12-17T09:03:01.123456Z"},
		{"1.765962181e+09", "2025-12-17T09:03:01Z"},

		{"29/Feb/2025:00:00:00 +0000", ""},
		{"31/Dec/1969:23:59:59 +0000", ""},
		{"01/Jan/2256:00:00:00 +0000", ""},
		{"17/Foo/2025:09:03:01 +0000", ""},
		{"17/Dec/2025:24:03:01 +0000", ""},
		{"17/Dec/2025:09:03:01 +0", ""},
		{"17/Dec/2025:09:03:01 +0000 and more", ""},
		{"2025-12-17", ""},
		{"2025-12-17x09:03:01", ""},
		{"0.123", ""}, // a duration
		{"9999999999999999999999", ""},
		{"-1", ""},
		{"", ""},
	} {
		var times timestamps
		at, ok := times.read([]byte(c.text))
		got := ""
		if ok {
			got = time.UnixMicro(at).UTC().Format(time.RFC3339Nano)
		}
		if got != c.want {
			t.Errorf("%q is %q, want %q", c.text, got, c.want)
		}
	}
}

// Keeping the last text makes no difference.
func TestTimestampsOfConsecutiveLines(t *testing.T) {
	var times timestamps
	texts := []string{"17/Dec/2025:09:03:01 +0000", "17/Dec/2025:09:03:01 +0000", "17/Dec/2025:09:03:01 -0400", "nonsense", "17/Dec/2025:09:03:01 -0400", ""}
	for _, text := range texts {
		at, ok := times.read([]byte(text))
		if want, wantOK := readTime([]byte(text)); at != want || ok != wantOK {
			t.Errorf("%q is %d, %v after %q; want %d, %v", text, at, ok, times.text, want, wantOK)
		}
	}
}

func FuzzClock(f *testing.F) {
	f.Add(int64(1765962181123456), 3600)
	f.Add(int64(951782400000000), -14400)
	f.Fuzz(func(t *testing.T, micros int64, zone int) {
		if micros < 1e14 || micros >= latest {
			return
		}
		when := time.UnixMicro(micros).In(time.FixedZone("", zone%86400/60*60))
		var times timestamps
		for _, layout := range []string{"02/Jan/2006:15:04:05.000000 -0700", time.RFC3339Nano, "2006-01-02 15:04:05.000000Z07:00"} {
			text := when.Format(layout)
			if at, ok := times.read([]byte(text)); !ok || at != micros {
				t.Errorf("%q is %d, %v; want %d", text, at, ok, micros)
			}
		}
	})
}
