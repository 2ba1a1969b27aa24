// Package integration runs upstream's integration tests, as its module has them, against headgate.
// They take minutes and fixed ports. make upstream installs what they need and runs them. Without
// the build tag upstream, the package has no tests.
package integration
