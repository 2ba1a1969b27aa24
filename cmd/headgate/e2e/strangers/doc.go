// Package strangers tests headgate serve with gRPC clients that share no code with it. Its own
// tests use grpcio of Python, and h2load. Package grpcjs uses grpc-js of Node.
package strangers
