package chaos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// apart is how far the clocks of two primaries are apart.
const apart = 2 * time.Second

// sentinelFaults befall a primary whose replica is promoted by sentinels.
func sentinelFaults() []fault {
	return []fault{
		{name: "sentinel, primary killed", build: promoted(0), bound: "a fresh limit"},
		{name: "sentinel, the next clock 2 s ahead", build: promoted(apart), bound: "a fresh limit"},
		{name: "sentinel, the next clock 2 s behind", build: promoted(-apart), bound: "a fresh limit"},
	}
}

func promoted(ahead time.Duration) func(t *testing.T) *scene {
	return func(t *testing.T) *scene {
		s := redistest.StartSentinel(t, 1, ahead)
		return &scene{
			open:   openURL(t, "redis+sentinel://"+strings.Join(s.Addrs, ",")+"/"+redistest.SentinelMaster),
			inject: func(context.Context) { s.Primary.Stop() },
			begun:  once,
			felt: func() {
				if roleOf(t, s.Replicas[0]) != "master" {
					t.Error("the replica was not promoted")
				}
			},
		}
	}
}
