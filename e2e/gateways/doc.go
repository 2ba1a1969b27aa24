// Package gateways runs the configurations of docs/gateways with real nginx, Caddy and HAProxy in
// front of headgate serve. make gateways installs them and runs it.
package gateways
