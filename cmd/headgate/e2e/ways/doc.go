// Package ways compares the files that requests enter with the files that ARCHITECTURE.md names. It
// has nothing but tests.
package ways
