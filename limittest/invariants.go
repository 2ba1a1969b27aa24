package limittest

import "testing"

func invariants(t *testing.T, open Open) {}
func lessons(t *testing.T, open Open)    {}
