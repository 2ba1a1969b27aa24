package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

// logsOf names logs a, b, c...
func logsOf(texts ...string) (logs []replay.Log) {
	for i, text := range texts {
		logs = append(logs, replay.Log{Name: string(rune('a' + i)), Reader: strings.NewReader(text)})
	}
	return logs
}

// run gives the report of a replay as JSON, or its error as text.
func run(t *testing.T, c replay.Config, texts ...string) string {
	t.Helper()
	report, err := replay.Run(t.Context(), c, logsOf(texts...)...)
	if err != nil {
		return err.Error()
	}
	out, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// line is one request at a second of 17 December 2025, 09:03.
func line(addr string, second int) string {
	return fmt.Sprintf("%s - - [17/Dec/2025:09:03:%02d +0000] \"GET /a?b HTTP/1.1\" 200 5 \"-\" \"curl/8\"\n", addr, second)
}

func TestReport(t *testing.T) {
	a := line("198.18.0.1", 1) + line("198.18.0.2", 1) + "\n" + "nonsense\n" + line("198.18.0.1", 2) + "\n"
	b := "\r\n" + strings.Repeat(`{"ts":1765962181.5,"ip":"198.18.0.1"}`+"\n", 2) + `{"ts":1765962181`
	c := config(t, "ip", "1/m", "api=2/s fixed-window")
	const want = `{"files":[{"name":"a","format":"combined","lines":6},{"name":"b","format":"json","lines":4}],"by":"ip",` +
		`"lines":10,"requests":5,"keys":2,"skipped":5,"skipped_reasons":[` +
		`{"reason":"blank","lines":3,"file":"a","first_line":3},` +
		`{"reason":"not a whole JSON object","lines":1,"file":"b","first_line":4},` +
		`{"reason":"not in a known format","lines":1,"file":"a","first_line":4}],"late":0,` +
		`"span":{"from":"2025-12-17T09:03:01Z","to":"2025-12-17T09:03:02Z"},"peak":{"at":"2025-12-17T09:03:01Z","requests":4},` +
		`"limits":[{"limit":"1/m","requests":5,"allowed":2,"denied":3,"keys":2,"denied_keys":1,"skipped":5,` +
		`"top":[{"key":"198.18.0.1","requests":4,"denied":3,"share":1}]},` +
		`{"limit":"api=2/s fixed-window","requests":5,"allowed":4,"denied":1,"keys":2,"denied_keys":1,"skipped":5,` +
		`"top":[{"key":"198.18.0.1","requests":4,"denied":1,"share":1}]}]}`
	if got := run(t, c, a, b); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Over one in a hundred lines that could not be read, without those that are blank, directives, or
// of another kind than the key.
func TestUnreadable(t *testing.T) {
	good := strings.Repeat(line("198.18.0.1", 1), 99)
	for _, c := range []struct {
		name, by, log string
		unread        bool
	}{
		{"one in a hundred", "ip", good + "x\n", false},
		{"two", "ip", good + "x\ny\n", true},
		{"without a client", "ip", good + strings.Repeat(line("-", 2), 2), true},
		{"without a client, by path", "path", good + strings.Repeat(line("-", 2), 2), false},
		{"blank, directives", "ip", good + "\n\n#Date: x\n#Fields: a\n", false},
		{"a stack", "ip", good + "#0 /var\n#1 /var\n", true},
		{"no request", "path", good + strings.Repeat(`198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] "-" 408 0`+"\n", 50), false},
		{"no path in another's names", "path", good + strings.Repeat(`{"ts":1765962181,"ip":"198.18.0.1","wohin":"/"}`+"\n", 2), true},
		{"a request without a target", "path", good + strings.Repeat(`198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] "GET HTTP/1.1" 400 0`+"\n", 50), false},
		{"another format by noon", "ip", good + strings.Repeat(`{"ts":1765962181,"ip":"198.18.0.1"}`+"\n", 50), false},
	} {
		report, err := replay.Run(t.Context(), config(t, c.by, "1/m"), logsOf(c.log)...)
		if err != nil || (report.Unreadable() != nil) != c.unread {
			t.Errorf("%s: %v %v; want unreadable: %v", c.name, err, report.Unreadable(), c.unread)
		}
	}
}

// A day of IIS without a request is as an empty file.
func TestNoRequestThatDay(t *testing.T) {
	for _, log := range []string{"", "\n", "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time c-ip\n"} {
		report, err := replay.Run(t.Context(), config(t, "ip", "1/m"), logsOf(log, line("198.18.0.1", 1))...)
		if err != nil || report.Requests != 1 {
			t.Errorf("%q: %+v %v; want 1 request", log, report, err)
		}
	}
}

func TestSkips(t *testing.T) {
	good := line("198.18.0.1", 1)
	for _, c := range []struct{ name, by, log, want string }{
		{"no client", "ip", good + line("-", 2), "no single client address before the time"},
		{"no header", "header:user-agent", good + `198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] "GET / HTTP/1.1" 200 5` + "\n", "no header:user-agent"},
		{"no request", "path", good + `198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] "-" 408 0` + "\n", "no path"},
		{"no request, method", "ip,method", good + `198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] "\x16\x03" 408 0` + "\n", "no method"},
		{"too long", "ip", good + strings.Repeat("x", 2<<20), "longer than 1 MiB"},
		{"before 1970", "ip", good + strings.Replace(good, "2025", "1969", 1), "not in a known format"},
	} {
		report, err := replay.Run(t.Context(), config(t, c.by, "1/m"), logsOf(c.log)...)
		if err != nil || report.Requests != 1 || report.Skipped != 1 || report.SkippedReasons[0].Reason != c.want {
			t.Errorf("%s: %+v, %v; want one request and one skipped: %s", c.name, report, err, c.want)
		}
	}
}

func TestNoReport(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\xff[\n", 1000)
	for _, c := range []struct{ name, by, format, log, want string }{
		{"picture", "ip", "auto", png, "a: no line is in a known log format; line 1 is not text"},
		{"picture with a line like JSON", "ip", "auto", png + "{\n", "a: no line is in a known log format; line 1 is not text"},
		{"one endless line", "ip", "auto", strings.Repeat("x", 3<<20), "a: no line is in a known log format; line 1: longer than 1 MiB"},
		{"JSON of another kind", "ip", "auto", "\n{\"a\":1}\n", "a: no line is in a known log format; line 2: no time that can be read; it has the members a; name those with the client and the time by --field client=NAME,time=NAME"},
		{"a format of one's own", "ip", "auto", "200|x\n", `a: no line is in a known log format; line 1 begins "200|x"; describe the lines by --format '$remote_addr [$time_local] ...', see docs/replay.md`},
		{"names without end", "ip", "auto", `{"` + strings.Repeat("a", 1000) + `":1}`, "a: no line is in a known log format; line 1: no time that can be read; it has the members " + strings.Repeat("a", 40) + "; name those with the client and the time by --field client=NAME,time=NAME"},
		{"an array", "ip", "auto", "[\n{\"a\":1},\n", "a: no line is in a known log format; line 1 is not one JSON object; to make such lines, type jq -c . FILE, or jq -c .[] FILE for an array"},
		{"another format", "ip", "json", line("198.18.0.1", 1), "a: no line is in the format json; line 1 begins \"198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] \\\"GET /\"; describe the lines by --format '$remote_addr $_ $_ [$time]$_', see docs/replay.md"},
		{"header that is not logged", "header:x-api-key", "auto", "\n" + line("198.18.0.1", 1), "a: no line can be replayed; line 2: no header:x-api-key; it begins \"198.18.0.1 - - [17/Dec/2025:09:03:01 +0000] \\\"GET /\"; describe the lines by --format '$remote_addr - - [$time_local] \"$request\" $_ $_ \"$_\" \"$_\" \"$http_x_api_key\"', see docs/replay.md"},
	} {
		config := config(t, c.by, "1/m")
		config.Format, _ = replay.ParseFormat(c.format)
		if got := run(t, config, c.log); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNothingToReplay(t *testing.T) {
	for _, log := range []string{"", "\n", "\r\n  \n"} {
		got := run(t, config(t, "ip", "1/m"), log)
		if !strings.Contains(got, `"requests":0,"keys":0,`) || !strings.Contains(got, `"span":null,"peak":null`) || !strings.Contains(got, `"top":[]`) {
			t.Errorf("%q: %s", log, got)
		}
	}
}

func TestReadFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := replay.Run(t.Context(), config(t, "ip", "1/m"),
		replay.Log{Name: "x", Reader: io.MultiReader(strings.NewReader(line("198.18.0.1", 1)), iotest.ErrReader(broken))})
	if !errors.Is(err, broken) || err.Error() != "x: broken" {
		t.Errorf("%v, want x: broken", err)
	}
}

// endless is a log without end.
type endless struct{ line string }

func (e endless) Read(b []byte) (int, error) { return copy(b, e.line), nil }

func TestCancel(t *testing.T) {
	for name, log := range map[string]string{"log": line("198.18.0.1", 1), "noise": "x\n", "no newline": "x"} {
		ctx, cancel := context.WithCancel(t.Context())
		c := config(t, "ip", "1/m")
		c.Progress = func(bytes int64) {
			if bytes > 1<<20 {
				cancel()
			}
		}
		if report, err := replay.Run(ctx, c, replay.Log{Name: "x", Reader: endless{log}}); report != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %v; want none and Canceled", name, report, err)
		}
	}
}

func TestProgressCountsStoredBytes(t *testing.T) {
	log := compressed([]byte(strings.Repeat(line("198.18.0.1", 1), 5000)))
	var last int64
	c := config(t, "ip", "1/m")
	c.Progress = func(bytes int64) { last = bytes }
	if _, err := replay.Run(t.Context(), c, replay.Log{Name: "x", Reader: bytes.NewReader(log)}); err != nil || last != int64(len(log)) {
		t.Errorf("%d bytes at the end, %v; want %d", last, err, len(log))
	}
}

// Keys that are not text stay apart in JSON, and are still JSON.
func TestKeysInJSON(t *testing.T) {
	var log []string
	for _, path := range []string{"/\xff", "/\xfe", "/\ufffd", "/<&>\x00"} {
		l := strings.Replace(line("198.18.0.1", 1), "/a", path, 1)
		log = append(log, l, l)
	}
	var report struct {
		Limits []struct {
			Top []struct {
				Key string `json:"key"`
			} `json:"top"`
		} `json:"limits"`
	}
	if err := json.Unmarshal([]byte(run(t, config(t, "path", "1/m"), strings.Join(log, ""))), &report); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, top := range report.Limits[0].Top {
		got = append(got, top.Key)
	}
	if want := []string{"/<&>\x00", "/\ufffd", `/\xfe`, `/\xff`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Two limits of one name are tried apart from each other.
func TestLimitsDoNotMeet(t *testing.T) {
	log := strings.Repeat(line("198.18.0.1", 1), 10)
	report, err := replay.Run(t.Context(), config(t, "ip", "api=3/m", "api=5/m", "3/m", "3/m"), logsOf(log)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{3, 5, 3, 3} {
		if got := report.Limits[i].Allowed; got != want {
			t.Errorf("limit %d allowed %d, want %d", i, got, want)
		}
	}
}

// Many keys at once lose nothing: each is allowed once.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	const keys = 100_000
	for range 2 {
		for i := range keys {
			log.WriteString(line(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), 1))
		}
	}
	report, err := replay.Run(t.Context(), config(t, "ip", "1/d"), logsOf(log.String())...)
	if err != nil {
		t.Fatal(err)
	}
	if l := report.Limits[0]; l.Keys != keys || l.Allowed != keys || l.DeniedKeys != keys {
		t.Errorf("%+v, want %d allowed", l, keys)
	}
}
