package chaos

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// apart is how far the clocks of two primaries are apart.
const apart = 5 * time.Second

// sentinelFaults befall a primary whose replica is promoted by sentinels.
func sentinelFaults() []fault {
	return []fault{
		{name: "sentinel, primary killed", build: promoted(0), bound: "a fresh limit"},
		{name: "sentinel, the next clock 5 s ahead", build: promoted(apart), bound: "a fresh limit"},
		{name: "sentinel, the next clock 5 s behind", build: promoted(-apart), bound: "a fresh limit"},
		{name: "sentinel, primary hangs and comes back", build: hangsAndComesBack, bound: "a fresh limit", sees: []string{"no answer in time"}},
	}
}

func sentinelURL(s *redistest.Sentinel) string {
	return "redis+sentinel://" + strings.Join(s.Addrs, ",") + "/" + redistest.SentinelMaster
}

func promoted(ahead time.Duration) func(t *testing.T) *scene {
	return func(t *testing.T) *scene {
		s := redistest.StartSentinel(t, 1, ahead)
		return &scene{
			open:   openURL(t, sentinelURL(s)),
			inject: func(<-chan struct{}) { s.Primary.Stop() },
			begun:  once,
			felt:   promotion(t, s.Replicas[0]),
		}
	}
}

// hangsAndComesBack stops the primary until another one has taken its place. Then there
// are two, until the sentinels tell the first.
func hangsAndComesBack(t *testing.T) *scene {
	s := redistest.StartSentinel(t, 1, 0)
	return &scene{
		open: openURL(t, sentinelURL(s)),
		inject: func(<-chan struct{}) {
			signal(t, s.Primary, syscall.SIGSTOP)
			until(t, "promoted", func() bool { return isPrimary(t, s.Replicas[0]) })
		},
		heal: func() {
			signal(t, s.Primary, syscall.SIGCONT)
			until(t, "demoted", func() bool { return isReplica(t, s.Primary) })
		},
		begun: once,
	}
}

// promotion returns an error until a replica has become a primary.
func promotion(t *testing.T, replica *redistest.Server) func() error {
	return func() error {
		if !isPrimary(t, replica) {
			return errors.New("the replica was not promoted")
		}
		return nil
	}
}

// once is for what is lost with one primary, or taken back to what its replica knows.
func once(*account) int64 { return 1 }
