package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/cmd/headgate/internal/report"
)

// A log that grows is read twice up to its length at first.
func TestReportOfGrowingLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.log")
	log, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	const request = `198.18.0.1 - - [22/Dec/2025:00:00:01 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	fmt.Fprint(log, request+request)
	cmd := NewSize(nil)
	f := &reportFlag{name: filepath.Join(t.TempDir(), "r.html")}
	r, err := f.begin(cmd, report.KindSize, []replay.Log{{Name: "a", Reader: log}}, int64(2*len(request)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.file.remove()
	if _, err := log.WriteAt([]byte(request), int64(2*len(request))); err != nil {
		t.Fatal(err)
	}
	d, err := f.build(t.Context(), r, &report.Build{})
	if err != nil || d.Size.Requests != 2 || d.Replay.Requests != 2 {
		t.Errorf("%+v, %v; want 2 requests", d, err)
	}
}

func TestCommandLine(t *testing.T) {
	for want, args := range map[string][]string{
		"headgate size a.log --per=1m":              {"size", "a.log", "--per=1m"},
		`headgate replay -l '10/s burst 50' ''`:     {"replay", "-l", "10/s burst 50", ""},
		`headgate size 'it'\''s $HOME' '*' 'ä' '~'`: {"size", "it's $HOME", "*", "ä", "~"},
	} {
		if got := commandLine(args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
