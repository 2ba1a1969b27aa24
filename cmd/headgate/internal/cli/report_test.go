package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

const shopDay = "../../../../examples/shop-day.log"

// paged runs headgate with --report, and returns what it prints and the data in the page.
func paged(t *testing.T, args ...string) (stdout string, data []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "r.html")
	var out, stderr bytes.Buffer
	args = append(args, "--report", file, shopDay)
	if code := exec(t.Context(), args, strings.NewReader(""), &out, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("%q: exit %d, %s", args, code, stderr.String())
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(page) > 1_000_000 {
		t.Errorf("a page of %d bytes", len(page))
	}
	_, rest, ok := bytes.Cut(page, []byte(`<script type="application/json" id="data">`))
	data, _, ok2 := bytes.Cut(rest, []byte("</script>"))
	if !ok || !ok2 {
		t.Fatalf("no data in %.200s", page)
	}
	text, rest2, ok := strings.Cut(out.String(), "\nreport    "+file+" (")
	if !ok || !strings.HasSuffix(rest2, " KB)\n") {
		t.Errorf("the last line of %q is not about the page", out.String())
	}
	return text, data
}

// The page has what is printed, and the command to make it again; what is printed is the same as
// without a page.
func TestReportData(t *testing.T) {
	for _, args := range [][]string{
		{"replay", "--limit", "10/m burst 3", "--limit", "api=5/h fixed-window", "--top", "2"},
		{"size", "--top", "2", "--by", "ip,method"},
	} {
		text, data := paged(t, args...)
		var plain, stderr bytes.Buffer
		if exec(t.Context(), append(args, shopDay), strings.NewReader(""), &plain, &stderr); plain.String() != text {
			t.Errorf("%q prints\n%s\nwithout --report\n%s", args, text, plain.String())
		}
		var d struct {
			Version int    `json:"version"`
			Kind    string `json:"kind"`
			Command string `json:"command"`
			Size    struct {
				Requests int64 `json:"requests"`
				Keys     int64 `json:"keys"`
			} `json:"size"`
			Replay struct {
				Requests int64 `json:"requests"`
				Limits   []struct {
					Denied int64 `json:"denied"`
				} `json:"limits"`
				Detail replay.Detail `json:"detail"`
			} `json:"replay"`
			Limits []report.Limit `json:"limits"`
		}
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		if d.Version != report.Version || d.Kind != args[0] || d.Size.Requests < 980 || d.Replay.Requests != d.Size.Requests ||
			len(d.Limits) != len(d.Replay.Limits) || len(d.Replay.Detail.Keys) != len(d.Limits) {
			t.Errorf("%q: %+v", args, d)
		}
		if want := "headgate " + args[0]; !strings.HasPrefix(d.Command, want) || !strings.HasSuffix(d.Command, shopDay) {
			t.Errorf("the command is %s", d.Command)
		}
		for i, l := range d.Replay.Limits {
			sum := int64(0)
			for _, n := range d.Replay.Detail.Timeline.Denied[i] {
				sum += n
			}
			if sum != l.Denied {
				t.Errorf("%q: limit %d denies %d, in bars %d", args, i, l.Denied, sum)
			}
		}
	}
}

// headgate serve --check accepts each rule of a page, for every key and algorithm.
func TestReportRules(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	limits := []string{
		"10/m", "1252/h burst 7", "1.5/s", "5/15m fixed-window", "60/90m sliding-window", "60/m sliding-log",
		"10/m burst 25 stepped", "a.B-c_9=7/1500ms stepped", long + "=1/250us",
		"true=5/m", "Null=5/m", "FALSE=5/m", "yes=5/m", "off=5/m", "n=5/m",
	}
	for _, by := range []string{"ip", "path", "method", "ip,path", "method,ip", "header:user-agent", "header:User-Agent,path", "all"} {
		args := []string{"replay", "--by", by}
		for _, l := range limits {
			args = append(args, "--limit", l)
		}
		_, data := paged(t, args...)
		var d struct {
			Limits []report.Limit `json:"limits"`
		}
		if err := json.Unmarshal(data, &d); err != nil || len(d.Limits) != len(limits) {
			t.Fatalf("%d limits, %v", len(d.Limits), err)
		}
		for i, l := range d.Limits {
			file := filepath.Join(t.TempDir(), "rules.yaml")
			if err := os.WriteFile(file, []byte(l.YAML), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			code := exec(t.Context(), []string{"serve", "--check", file}, nil, &stdout, &stderr)
			_, bare, named := strings.Cut(limits[i], "=")
			if !named {
				bare = limits[i]
			}
			if code != 0 || stderr.Len() > 0 || i != 2 && !strings.Contains(stdout.String(), bare) {
				t.Errorf("%s\nby %s: exit %d, %s%s", l.YAML, by, code, stdout.String(), stderr.String())
			}
		}
	}
}

// A page that is not finished leaves nothing, whatever stops it.
func TestReportInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := exec(ctx, []string{"size", "--report", filepath.Join(dir, "r.html"), shopDay}, nil, &stdout, &stderr)
	if left, _ := os.ReadDir(dir); code != command.ExitInterrupted || len(left) > 0 {
		t.Errorf("exit %d, left %v", code, left)
	}
}
