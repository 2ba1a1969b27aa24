// Package strangers tests headgate serve with gRPC clients that share no code with it: grpcio of
// Python, grpc-js of Node, and h2load. It has nothing but tests.
package strangers
