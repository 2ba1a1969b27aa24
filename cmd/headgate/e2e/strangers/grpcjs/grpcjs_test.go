//go:build grpcjs

package grpcjs

import (
	"testing"

	"github.com/headgate/headgate/cmd/headgate/e2e/strangers"
)

func TestMain(m *testing.M) { strangers.Main(m) }

func TestGRPCJS(t *testing.T) { strangers.Run(t, "node", "testdata/client.js") }
