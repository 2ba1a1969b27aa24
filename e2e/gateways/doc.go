// Package gateways runs the configurations of docs/gateways with real nginx, Apache, Caddy, HAProxy
// and Envoy in front of headgate serve. It also runs the actions and options of Envoy's rate limits,
// and redisstore with Redis servers behind Envoy. make gateways installs them and runs the tests;
// with -gateways.long, they break Redis behind Envoy in all ways. make sdks does the same with the
// SDKs of model APIs, which send requests through the proxy with the rules of docs/tokens.md.
// Without the build tag gateways, the package has no tests.
package gateways
