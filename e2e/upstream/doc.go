// Package upstream holds the service to envoyproxy/ratelimit itself.
//
// Its src/config is the oracle for the dialect: what it accepts is accepted, what it refuses is
// refused with its words, and the same limit applies to the same descriptor. With the build tag
// integration, its own integration tests run, unedited, against the binary of this repository.
package upstream
