// Package chaos breaks real Redis servers under a steady load, and holds what was
// granted before, during and after against the bound of each key. `make chaos` takes
// its time; `make test` does the same in short. It has nothing but tests.
package chaos
