// Package upstream holds the service to envoyproxy/ratelimit itself.
//
// Its src/config is the oracle for the dialect: what it accepts is accepted, what it refuses is
// refused with its words, and the same limit applies to the same descriptor. Package integration
// runs its own integration tests against the binary of this repository. Nothing of upstream is in
// this repository: both read its module.
package upstream

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// ModuleDir returns the directory of upstream's module.
func ModuleDir(ctx context.Context) (string, error) {
	const module = "github.com/envoyproxy/ratelimit"
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
