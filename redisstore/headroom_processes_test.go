package redisstore_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// In 8 processes, a batch class that leaves 40 of 100 takes all it can, beside a critical class
// that takes 40 in all. The critical class is never denied. On another key the batch class is
// alone, and gets 60: the capacity less its headroom.
func TestHeadroomIsKeptFromEightProcesses(t *testing.T) {
	if addr := os.Getenv(childAddr); addr != "" {
		headroomChild(t, addr)
		return
	}
	type class struct {
		key      string
		headroom int64
	}
	var mu sync.Mutex
	granted := make(map[int]map[class]int64)
	inProcesses(t, 8, func(line string) {
		var limit int
		var c class
		var n int64
		if found, _ := fmt.Sscanf(line, "limit %d key %s headroom %d granted %d", &limit, &c.key, &c.headroom, &n); found < 4 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if granted[limit] == nil {
			granted[limit] = make(map[class]int64)
		}
		granted[limit][c] += n
	})
	for i, text := range everyAlgorithm {
		batch, critical := granted[i][class{"both", 40}], granted[i][class{"both", 0}]
		if critical != 40 || batch < 20 || batch > 60 {
			t.Errorf("%s: %d of 40 critical requests granted and %d of 160 of batch; want all, and 20 to 60",
				text, critical, batch)
		}
		if alone := granted[i][class{"alone", 40}]; alone != 60 {
			t.Errorf("%s: %d of 160 granted to batch alone; want 60", text, alone)
		}
	}
}

// headroomChild is one of the processes.
func headroomChild(t *testing.T, addr string) {
	s, err := redisstore.Open("redis://" + addr + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, text := range everyAlgorithm {
		run := func(key string, headroom int64, times int) {
			r := headgate.Request{Key: key, Limit: parse(t, text), Cost: 1, Headroom: headroom,
				At: time.Unix(1<<32, 0)}
			var granted atomic.Int64
			var wg sync.WaitGroup
			for range times {
				wg.Go(func() {
					if d, err := s.Take(t.Context(), r); err != nil {
						t.Error(err)
					} else if d.Allowed() {
						granted.Add(1)
					}
				})
			}
			wg.Wait()
			fmt.Println("limit", i, "key", key, "headroom", headroom, "granted", granted.Load())
		}
		var both sync.WaitGroup
		both.Go(func() { run("both", 40, 20) })
		both.Go(func() { run("both", 0, 5) })
		both.Wait()
		run("alone", 40, 20)
	}
}
