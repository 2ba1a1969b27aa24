// Package upstream holds the service to envoyproxy/ratelimit itself.
//
// Its src/config is the oracle for the dialect: what it accepts is accepted, what it refuses is
// refused with its words, and the same limit applies to the same descriptor. Package integration
// runs its own integration tests against the binary of this repository. Nothing of upstream is in
// this repository: both read its module.
package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// ModuleDir downloads upstream's module if needed, and returns its directory.
func ModuleDir(ctx context.Context) (string, error) {
	const module = "github.com/envoyproxy/ratelimit"
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download: %w", err)
	}
	var downloaded struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return "", fmt.Errorf("go mod download: %w", err)
	}
	return downloaded.Dir, nil
}
