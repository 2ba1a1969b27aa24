package strangers

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The HTTP/2 of nghttp2, which is also that of Envoy, from many connections: every request is
// answered, and every one is counted once.
func TestLoad(t *testing.T) {
	s := startServer(t)
	message, err := hex.DecodeString(decide(t, request("edge", "load", "h2load")).Message)
	if err != nil {
		t.Fatal(err)
	}
	body := filepath.Join(t.TempDir(), "body")
	framed := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
	if err := os.WriteFile(body, framed, 0o600); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, load := range []struct{ connections, streams, requests int }{
		{64, 1, 6_400}, {64, 32, 12_800}, {1_000, 4, 10_000},
	} {
		name := fmt.Sprintf("%d connections with %d streams", load.connections, load.streams)
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "h2load",
				"-c", strconv.Itoa(load.connections), "-m", strconv.Itoa(load.streams),
				"-n", strconv.Itoa(load.requests),
				"-d", body, "-H", "content-type: application/grpc", "-H", "te: trailers",
				"http://"+s.grpc+shouldRateLimit).CombinedOutput()
			if err != nil {
				t.Fatalf("h2load: %v: see scripts/deps\n%s", err, out)
			}
			want := fmt.Sprintf("%d succeeded, 0 failed, 0 errored, 0 timeout", load.requests)
			if !strings.Contains(string(out), want) {
				t.Errorf("want %q in\n%s", want, out)
			}
			total += load.requests
			got := s.counter(t, "ratelimit.service.rate_limit.edge.load.total_hits")
			if got != strconv.Itoa(total) {
				t.Errorf("%s were counted, want %d", got, total)
			}
		})
	}
}
