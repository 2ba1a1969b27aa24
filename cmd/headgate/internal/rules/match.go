package rules

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/keytext"
)

// target is a request, brought into the form by which rules match.
type target struct {
	*Request

	method string // upper case
	host   string // clean
	path   string // clean
	slash  bool   // the path had a slash at its end
	dotted string // the path by [withDots]
	empty  string // the path by [withEmpty]
}

func newTarget(q *Request) target {
	t := target{Request: q, method: strings.ToUpper(q.Method), host: keytext.Host(q.Host)}
	t.path, t.slash = cleanPath(q.Path)
	t.dotted, t.empty = withDots(q.Path), withEmpty(q.Path)
	return t
}

// matches reports whether r applies to q, given that its path was found by the index.
func (r *rule) matches(q *target) bool {
	return r.matchesMethod(q.method) && r.matchesHost(q.host) && r.matchesExpression(q)
}

func (r *rule) matchesMethod(method string) bool {
	if len(r.Match.Methods) == 0 || slices.Contains(r.Match.Methods, method) {
		return true
	}
	return method == "HEAD" && slices.Contains(r.Match.Methods, "GET")
}

func (r *rule) matchesHost(host string) bool {
	if len(r.Match.Hosts) == 0 || slices.Contains(r.hosts, host) {
		return true
	}
	for _, ending := range r.endings {
		if len(host) > len(ending) && strings.HasSuffix(host, ending) {
			return true
		}
	}
	return false
}

// matchesExpression also tries the path with the slash that was at its end, for expressions such
// as ^/v1/.
func (r *rule) matchesExpression(q *target) bool {
	return r.path == nil || r.path.MatchString(q.path) ||
		q.slash && r.path.MatchString(q.path+"/")
}
