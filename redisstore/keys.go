package redisstore

import "strings"

// key is the key in Redis for key and the ID of a limit: prefix{key}:id. A Cluster hashes what is
// between the first brace and the next, so that all limits of a key are on one server. The key may
// hold any bytes: its closing braces and percent signs are escaped, so that no two names collide.
func (s *Store) key(key, id string) string {
	return s.prefix + "{" + escape(s.StoredKey(key)) + "}:" + id
}

// permitsID is the id of the key of permits. No limit has an ID that begins with @.
const permitsID = "@permits"

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

func unescape(key string) string {
	if key == "%" {
		return ""
	}
	return unescaper.Replace(key)
}
