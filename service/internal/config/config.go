// Package config reads the file of rules.
package config

import (
	"net/netip"

	"github.com/headgate/headgate/service/internal/rules"
)

// Config is what the files say, checked. It does not change after it was read.
type Config struct {
	Store          string // the URL of the store; empty: memory:
	WhenStoreFails Policy
	Trust          []netip.Prefix // proxies whose X-Forwarded-For counts
	Listen         Listen
	TLS            TLS
	API            API
	Rules          []rules.Rule
	Overrides      []rules.Override

	// Domains are in the dialect of envoyproxy/ratelimit; package envoy adds the field's type.

	Warnings []string // what is accepted and likely wrong, with file and line
	Hash     string   // of the files' contents
	Files    []string
}

// Policy says what is answered while the store fails.
type Policy string

// The policies: deny all, allow all, or decide by this instance's share of each limit.
const (
	Closed Policy = "closed"
	Open   Policy = "open"
	Share  Policy = "share"
)

// Listen holds the addresses of the listeners; an empty one is off.
type Listen struct {
	HTTP    string
	GRPC    string
	Debug   string
	Metrics string
}

// TLS names certificate files, which are read again when they change.
type TLS struct {
	Cert     string
	Key      string
	ClientCA string // clients must show a certificate that it signed
}

// API restricts the HTTP interface.
type API struct {
	Tokens            []string // bearer tokens; none: no token is asked for
	AllowInlineLimits bool
}
