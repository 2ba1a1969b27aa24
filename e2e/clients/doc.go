// Package clients runs the tests of headgate.redis for Python and headgate/redis for Node with real
// Redis servers, a hammer of processes in Go, Python and Node on the same keys, the checks of types
// and style of both, compares the scripts in their packages with those of redisstore, and tests the
// HTTP API with schemathesis, and middleware in the frameworks of Node. make clients installs what
// they need and runs the tests. Without the build tag clients, the package has no tests.
package clients
