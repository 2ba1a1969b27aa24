package serve

import (
	"compress/gzip"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/fallback"
)

// What was counted, banned and switched in memory survives a restart.
func TestMemoryFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory")
	o := Options{Store: "memory:?file=" + path}
	first := serveHTTP(t, o)
	take := func(r *running, key string) int {
		status, text := r.do(http.MethodPost, "/v1/take", `{"rule": "api", "key": "ip:192.0.2.`+key+`"}`)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		return strings.Count(text, `"allowed":true`)
	}
	const hits = `{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`
	if take(first, "1")+take(first, "1")+take(first, "2") != 3 || first.ask(hits) != 200 {
		t.Fatal("denied at first")
	}
	for _, body := range []string{
		`{"rule": "api", "key": "ip:192.0.2.3", "ban": true}`,
		`{"rule": "api", "key": "ip:198.51.*", "limits": ["9/h"], "for": 3600}`,
	} {
		if status, text := first.do(http.MethodPut, "/v1/overrides", body); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	for range 2 { // also what a server has only read
		first.end()
		<-first.done
		first = serveHTTP(t, o)
	}
	if take(first, "1") != 1 || take(first, "1") != 0 || take(first, "3") != 0 || take(first, "4") != 1 ||
		first.ask(hits) != http.StatusTooManyRequests {
		t.Error("the counts are not those of before the restart")
	}
	if _, text := first.get("/v1/overrides"); !strings.Contains(text, `"ip:198.51.*"`) {
		t.Errorf("overrides: %s", text)
	}
	first.end()
	<-first.done
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("also there: %v, %v", left, err)
	}
}

// A file that cannot be used is one error, and is kept aside. A file that cannot be written is one,
// too, and the old one stays.
func TestMemoryFileFails(t *testing.T) {
	t.Parallel()
	for want, content := range map[string]func(f *os.File){
		": damaged, or not of version 1: unexpected EOF; ": func(f *os.File) { _, _ = f.WriteString("rules: []") },
		"not of version 1: it is of version 2; it is now ": func(f *os.File) {
			z := gzip.NewWriter(f)
			_, _ = z.Write([]byte(`{"headgate_memory": 2}`))
			_ = z.Close()
		},
	} {
		path := filepath.Join(t.TempDir(), "memory")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		content(f)
		_ = f.Close()
		var log buffer
		r := serveHTTP(t, Options{Store: "memory:?file=" + path, Log: slog.New(slog.NewTextHandler(&log, nil))})
		r.stores.outages.look(nil, fallback.Stats{}) // as the first ping does
		r.end()
		<-r.done
		if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, want) {
			t.Errorf("the log has no %q: %s", want, text)
		}
		for _, name := range []string{path, path + ".refused"} {
			if _, err := os.Stat(name); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		r.saveMemory()
		if text := log.String(); !strings.Contains(text, "the memory file was not written") {
			t.Errorf("the log is %s", text)
		}
	}
}
