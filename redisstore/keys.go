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

// permitsID stands in the place of a limit's ID. No limit has an ID that begins with @.
const permitsID = "@permits"

// permitKey is the key in Redis of the permits of key.
func (s *Store) permitKey(key string) string {
	return s.prefix + "{" + escape(key) + "}:" + permitsID
}

// parseName returns the key and the ID of a limit of a key in Redis.
func (s *Store) parseName(name string) (key, id string, ok bool) {
	rest, ok := strings.CutPrefix(name, s.prefix+"{")
	key, id, found := strings.Cut(rest, "}:")
	return unescape(key), id, ok && found && id != ""
}

// pattern returns the pattern of the keys in Redis for keys that match.
func (s *Store) pattern(match string) string {
	return quoter.Replace(s.prefix) + "{" + escape(match) + "}:*"
}

// quoter quotes a text in a pattern.
var quoter = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

var (
	escaper   = strings.NewReplacer("%", "%25", "}", "%7D")
	unescaper = strings.NewReplacer("%25", "%", "%7D", "}")
)

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

// unescape is the inverse of escape.
func unescape(key string) string {
	if key == "%" {
		return ""
	}
	return unescaper.Replace(key)
}
