package redisstore

import (
	"strings"

	"github.com/headgate/headgate"
)

// key is the key in Redis for the state of key under l: prefix{key}:id. A Cluster hashes what is
// between the first brace and the next, so that all limits of a key are on one server. The key may
// hold any bytes: its closing braces and percent signs are escaped, so that no two names collide.
func (s *Store) key(key string, l headgate.Limit) string {
	return s.prefix + "{" + escape(key) + "}:" + l.ID()
}

var escaper = strings.NewReplacer("%", "%25", "}", "%7D")

// escape is one to one, and never empty: a Cluster ignores empty braces.
func escape(key string) string {
	if key == "" {
		return "%"
	}
	if !strings.ContainsAny(key, "%}") {
		return key
	}
	return escaper.Replace(key)
}

// permitKey is the key in Redis of the permits of key. No limit has an ID that begins with @.
func (s *Store) permitKey(key string) string { return s.prefix + "{" + escape(key) + "}:@permits" }
