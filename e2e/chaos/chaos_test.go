package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// span is how long the load lasts for each fault: a quarter of it before the fault, half
// of it while the fault lasts, and a quarter after all answers again.
var span = flag.Duration("chaos.span", 2*time.Second, "how long the load lasts for each fault")

// short is below what not all faults meet all stacks.
const short = 10 * time.Second

// together is how many faults are injected side by side, each into servers of its own.
var together = flag.Int("chaos.together", 6, "how many faults side by side")

// fault is one way to break Redis, and what may be granted then.
type fault struct {
	name string

	// build starts a Redis of the fault's shape.
	build func(t *testing.T) *scene

	// bound says in words what may be granted beyond the limits, "" for nothing.
	bound string

	// sees are texts that callers of the bare store must find in errors, and then those of the others decisions
	// that are not the store's, so that the fault is known to have been felt; quiet is that they must find no error but that an answer is late.
	sees  []string
	quiet bool
}

// scene is a Redis that is about to break.
type scene struct {
	// open makes a store with a client of its own.
	open func(prefix string) (store *redisstore.Store, closeAll func())

	// inject breaks what the fault breaks, and may go on doing so until over is closed.
	inject func(over <-chan struct{})

	// heal mends it, and returns when that is done. Nil if Redis mends itself.
	heal func()

	// begun is how often what was known of the key may have been forgotten, or taken
	// back to what it was before. Nil for never.
	begun func(a *account) int64

	// dropped is how often what leases of the key are counted by was forgotten besides. Nil for never.
	dropped func(a *account) int64

	// felt returns an error while the servers have not felt the fault. May be nil.
	felt func() error
}

// seed is the seed of the traffic: HEADGATE_SEED; otherwise a fixed one, and a random one in soak.
var seed = flag.Uint64("chaos.seed", 1, "seed of the traffic")

// turn says which stack a short run puts beside the bare one under each fault. It changes each
// day, so that all faults meet all stacks.
var turn = flag.Int("chaos.turn", int(time.Now().Unix()/86400), "which stacks live through a short run")

// soaks is set by HEADGATE_SOAK: all faults meet all stacks.
var soaks bool

func TestMain(m *testing.M) {
	flag.Parse()
	if d, err := time.ParseDuration(os.Getenv("HEADGATE_SOAK")); err == nil {
		*span, *together, *seed, soaks = d, 3, rand.Uint64(), true
	}
	if n, err := strconv.ParseUint(os.Getenv("HEADGATE_SEED"), 10, 64); err == nil {
		*seed = n
	}
	redis.SetLogger(silent{}) // it reports each connection that is lost
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// some returns the stacks of the fault with that number: in a short run the bare one, and another
// in turn.
func some(number int) []stack {
	if soaks || *span >= short {
		return stacks
	}
	return []stack{stacks[0], stacks[1+(number+*turn)%(len(stacks)-1)]}
}

// TestChaos injects all faults, and prints what came of it.
func TestChaos(t *testing.T) {
	faults := slices.Concat(serverFaults(), networkFaults(), memoryFaults(), userFaults(), clusterFaults(), sentinelFaults())
	rows := make([][]row, len(faults))
	places := make(chan struct{}, *together)
	var wg sync.WaitGroup
	for i, f := range faults {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(f.name, func(t *testing.T) { rows[i] = f.run(t, some(i)) })
		})
	}
	wg.Wait()
	if t.Failed() {
		t.Logf("repeat with -chaos.span %s -chaos.turn %d -chaos.seed %d; or in make soak, with HEADGATE_SEED=%[3]d", *span, *turn, *seed)
	}
	fmt.Print(table(rows)) // go test shows it with -v, or if it is run in this directory
}
