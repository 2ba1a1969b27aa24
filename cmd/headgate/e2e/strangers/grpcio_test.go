package strangers

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestGRPCIO(t *testing.T) {
	t.Parallel()
	// Debian's grpcio is of Debian's Python, and another one may come first in the path.
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	Run(t, python, "testdata/client.py")
}
