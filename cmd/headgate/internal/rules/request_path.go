package rules

import (
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"
)

// This file brings paths and hosts into one form, so that a client cannot avoid a rule by another
// spelling of what its server understands as the same.

// TargetPath returns the decoded path of a request target: /a%20b?c, http://host/a or http:a, which
// some servers take for /a. An escape that cannot be decoded is kept.
func TargetPath(target string) string {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if !strings.HasPrefix(target, "/") {
		if _, rest, found := strings.Cut(target, ":"); found {
			target = rest
		}
		if rest, found := strings.CutPrefix(target, "//"); found {
			_, target, _ = strings.Cut(rest, "/")
			target = "/" + target
		}
	}
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	return unescape(target)
}

// TargetQuery returns the encoded query of a request target.
func TargetQuery(target string) string {
	_, query, _ := strings.Cut(target, "?")
	return query
}

var escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// unescape decodes each escape of s once.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		c, _ := hex.DecodeString(e[1:])
		return string(c)
	})
}

// cleanPath returns the form of a decoded path by which rules match: without empty segments, dots,
// parameters (all after a semicolon in a segment) and a slash at the end. It reports whether there
// was a slash at the end. Letters keep their case.
func cleanPath(p string) (clean string, slash bool) {
	if isClean(p) {
		return p, p == "/"
	}
	if strings.IndexByte(p, ';') >= 0 {
		p = withoutParameters(p)
	}
	clean = path.Clean("/" + p)
	return clean, strings.HasSuffix(p, "/") || clean == "/"
}

// isClean reports whether cleanPath has nothing to do.
func isClean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := range len(p) {
		switch p[i] {
		case ';':
			return false
		case '.', '/':
			if i > 0 && p[i-1] == '/' {
				return false
			}
		}
	}
	return len(p) == 1 || p[len(p)-1] != '/'
}

// withDots returns a path that has .. as servers read it to which these are a name, such as those
// that do not decode %2F, or to which parameters belong to the name. It is empty for other paths.
func withDots(p string) string {
	if !strings.Contains(p, "..") {
		return ""
	}
	segments := strings.Split(withoutParameters(p), "/")
	if !slices.Contains(segments, "..") {
		return ""
	}
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "" || s == "." })
	return "/" + strings.Join(segments, "/")
}

// withEmpty returns a path that has .. as servers read it that resolve that before they drop empty
// segments. It is empty for other paths.
func withEmpty(p string) string {
	if !strings.Contains(p, "..") {
		return ""
	}
	var kept []string
	for _, s := range strings.Split(withoutParameters(p), "/")[1:] {
		switch s {
		case ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
		}
	}
	return path.Clean("/" + strings.Join(kept, "/"))
}

func withoutParameters(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// cleanMethod returns the method in upper case, and "other" for one that no standard names, so
// that a client cannot invent keys.
func cleanMethod(method string) string {
	switch m := strings.ToUpper(method); m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE":
		return m
	}
	return "other"
}
