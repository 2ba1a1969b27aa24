// Package grpcjs tests headgate serve with grpc-js, gRPC for Node. make grpc-js installs it with
// npm, and runs the tests. Without the build tag grpcjs, the package has no tests.
package grpcjs
