// Package serve is the rate limit server: one process, one rules file, a Redis or none.
//
// It answers Envoy's rate limit protocol over gRPC, an HTTP/JSON interface for every language,
// and the forward-auth requests of proxies; and it can be the proxy itself. All of them decide by
// the same rules in the same store.
package serve
