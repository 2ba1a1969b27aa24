package redisstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

const (
	processes  = 4
	goroutines = 16

	// childAddr names the server that a process of a test uses.
	childAddr = "HEADGATE_TEST_CHILD_ADDR"
)

// 64 goroutines in 4 processes take from one key at one instant, and are granted exactly the limit.
func TestProcessesAreGrantedTheLimitAtOneInstant(t *testing.T) {
	if addr := os.Getenv(childAddr); addr != "" {
		instantChild(t, addr)
		return
	}
	granted := make([]atomic.Int64, len(everyAlgorithm))
	inProcesses(t, processes, func(line string) {
		var limit, n int64
		if found, _ := fmt.Sscanf(line, "limit %d granted %d", &limit, &n); found == 2 {
			granted[limit].Add(n)
		}
	})
	for i, text := range everyAlgorithm {
		if n := granted[i].Load(); n != 100 {
			t.Errorf("%s: %d of 640 granted; want 100", text, n)
		}
	}
}

// inProcesses runs the test in n processes at once, and calls read with each line that they print.
func inProcesses(t *testing.T, n int, read func(line string)) {
	t.Helper()
	var wg sync.WaitGroup
	addr := sharedServer(t).Addr
	for range n {
		wg.Go(func() {
			run := "-test.run=^" + t.Name() + "$"
			cmd := exec.CommandContext(t.Context(), os.Args[0], run) //nolint:gosec // itself
			cmd.Env = append(os.Environ(), childAddr+"="+addr)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process: %v\n%s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				read(line)
			}
		})
	}
	wg.Wait()
}

// instantChild is one of the processes.
func instantChild(t *testing.T, addr string) {
	s, err := redisstore.Open("redis://" + addr + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, text := range everyAlgorithm {
		r := headgate.Request{Key: "instant", Limit: parse(t, text), Cost: 1,
			At: time.Unix(1<<32, 0)}
		var granted atomic.Int64
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range 10 {
					if d, err := s.Take(t.Context(), r); err != nil {
						t.Error(err)
					} else if d.Allowed() {
						granted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		fmt.Println("limit", i, "granted", granted.Load())
	}
}
