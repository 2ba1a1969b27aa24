package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/redis/go-redis/v9"
)

// span is how long the load lasts for each fault: a quarter of it before the fault, half
// of it while the fault lasts, and a quarter after all answers again.
var span = flag.Duration("chaos.span", 3*time.Second, "how long the load lasts for each fault")

// together is how many faults are injected side by side, each into servers of its own.
var together = flag.Int("chaos.together", 6, "how many faults side by side")

// fault is one way to break Redis, and what may be granted then.
type fault struct {
	name string

	// build starts a Redis of the fault's shape.
	build func(t *testing.T) *scene

	// bound says in words what may be granted beyond the limits, "" for nothing.
	bound string

	// sees are texts that callers must find in errors, so that the fault is known to
	// have been felt; quiet is that they must find no error but that of their deadline.
	sees  []string
	quiet bool
}

// scene is a Redis that is about to break.
type scene struct {
	// open makes a store with a client of its own.
	open func() (store headgate.Store, closeAll func())

	// inject breaks what the fault breaks, and may go on doing so until over is closed.
	inject func(over <-chan struct{})

	// heal mends it, and returns when that is done. Nil if Redis mends itself.
	heal func()

	// begun is how often what was known of the key may have been forgotten, or taken
	// back to what it was before. Nil for never.
	begun func(a *account) int64

	// felt fails the test if the fault has not been felt by the servers. May be nil.
	felt func()
}

func TestMain(m *testing.M) {
	flag.Parse()
	redis.SetLogger(silent{}) // it tells of each connection that is lost
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestChaos injects all faults, and prints what came of it.
func TestChaos(t *testing.T) {
	if testing.Short() {
		*span = min(*span, 2*time.Second)
	}
	faults := slices.Concat(serverFaults(), networkFaults(), memoryFaults(), userFaults(), clusterFaults(), sentinelFaults())
	rows := make([]row, len(faults))
	places := make(chan struct{}, *together)
	var wg sync.WaitGroup
	for i, f := range faults {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(f.name, func(t *testing.T) { rows[i] = f.run(t) })
		})
	}
	wg.Wait()
	fmt.Print(table(rows)) // which go test shows if it is told to, or run in this directory
}
