package chaos

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
)

// several is the head of a stack in a profile of goroutines: how many there are, and where.
var several = regexp.MustCompile(`(?m)^(\d+) @`)

// checkGone fails the test if goroutines that were begun under load for the fault are
// still there when all is closed, because calls without a caller end by the client's timeouts.
func checkGone(t *testing.T, name string) {
	t.Helper()
	var left string
	until(t, "without goroutines of the stores", func() bool {
		left = labelled(t, name)
		return left == ""
	})
	if left != "" {
		t.Errorf("still there:\n%s", left)
	}
}

// labelled gives the stacks of the goroutines with the label of a fault.
func labelled(t *testing.T, name string) string {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	var stacks []string
	for block := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(block, fmt.Sprintf("# labels: {%q:%q}", "fault", name)) && several.MatchString(block) {
			stacks = append(stacks, block)
		}
	}
	return strings.Join(stacks, "\n\n")
}

// TestLabelled finds a goroutine that a labelled one has begun.
func TestLabelled(t *testing.T) {
	stop, name := make(chan struct{}), "leak "+strconv.Itoa(1)
	pprof.Do(t.Context(), pprof.Labels("fault", name), func(context.Context) { go func() { <-stop }() })
	if labelled(t, name) == "" {
		t.Error("a goroutine that is there was not found")
	}
	close(stop)
	checkGone(t, name)
}
