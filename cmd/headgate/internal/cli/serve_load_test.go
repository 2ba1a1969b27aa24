//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// While the file is read again a hundred times, no request is lost and no limit forgets what was
// used.
func TestServeReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	rules := func(i int) string {
		return fmt.Sprintf("rules:\n  - {name: load, key: ip, limits: 1000000/d fixed-window}\n"+
			"  - {name: other, match: {path: /%d}, limits: %d/m}\n", i, i+1)
	}
	writeFile(t, file, rules(0))
	s := startServer(t, nil, append([]string{"headgate"}, append(serveOn, "--config", file)...)...)
	const take = `{"rule": "load", "key": "ip:192.0.2.1"}`
	var taken atomic.Int64
	var ended atomic.Bool
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !ended.Load() {
				code, body := s.do(http.MethodPost, "http", "/v1/take", take)
				if code != http.StatusOK || !strings.Contains(body, `"allowed":true`) {
					t.Errorf("%d %s", code, body)
					return
				}
				taken.Add(1)
			}
		})
	}
	for i := range 100 {
		writeFile(t, file, rules(i+1))
		if code, body := s.do(http.MethodPost, "http", "/-/reload", ""); code != http.StatusOK {
			t.Errorf("reload %d: %d %s", i, code, body)
		}
	}
	ended.Store(true)
	callers.Wait()
	var peek struct {
		Remaining int64 `json:"remaining"`
	}
	_, body := s.do(http.MethodPost, "http", "/v1/peek", take)
	if err := json.Unmarshal([]byte(body), &peek); err != nil {
		t.Fatal(err)
	}
	if used := 1_000_000 - peek.Remaining; used != taken.Load() {
		t.Errorf("%d were taken, and %d are used", taken.Load(), used)
	}
	if _, page := s.get("http", "/metrics"); strings.Contains(page, `headgate_config_loads_total{result="success"} 1`+"\n") {
		t.Error("nothing was loaded again")
	}
}
