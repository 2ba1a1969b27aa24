package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/headgate/internal/command"
	"github.com/headgate/headgate/internal/redistest"
)

// A key of more than 1 KiB is listed by its hash, and every verb finds it by the whole key.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	url, key := redistest.Start(t).URL(), strings.Repeat("k", 2000)
	run := func(args ...string) string {
		t.Helper()
		var out, stderr bytes.Buffer
		code := exec(t.Context(), append(args, "--store", url), strings.NewReader(""), &out, &stderr)
		if code != command.ExitAllowed {
			t.Errorf("%.60q: exit %d, %.300s", args, code, stderr.String())
		}
		return out.String()
	}
	run("check", "--limit", "5/h", "--key", key, "--cost", "2")
	if out := run("peek", "--limit", "5/h", "--key", key, "--json"); !strings.Contains(out, `"remaining": 3`) {
		t.Errorf("peek: %.200s", out)
	}
	for _, match := range []string{key, "sha256:*"} {
		if out := run("keys", "--match", match, "--json"); !strings.Contains(out, `"sha256:`) || strings.Contains(out, "kkk") {
			t.Errorf("keys --match %.20q: %.300s", match, out)
		}
	}
	run("reset", "--limit", "5/h", "--key", key)
	if out := run("peek", "--limit", "5/h", "--key", key, "--json"); !strings.Contains(out, `"remaining": 5`) {
		t.Errorf("after a reset: %.200s", out)
	}
}
