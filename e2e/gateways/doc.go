// Package gateways runs the configurations of docs/gateways with real nginx, Apache, Caddy,
// HAProxy and Envoy in front of headgate serve. It also runs the actions and options of Envoy's
// rate limits, and redisstore with Redis servers behind Envoy. make gateways installs the gateways
// and runs the tests. With -gateways.long, the tests try all failures of Redis behind Envoy. make
// sdks installs the SDKs of model APIs, and sends requests with them through the proxy with the
// rules of docs/tokens.md. Without the build tag gateways, the package has no tests.
package gateways
