package rules

import (
	"net/http"
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

	preflight bool // a browser asks whether a page may send a request
}

func newTarget(q *Request) target {
	t := target{Request: q, method: strings.ToUpper(q.Method), host: keytext.Host(q.Host)}
	t.path, t.slash = cleanPath(q.Path)
	t.dotted, t.empty = withDots(q.Path), withEmpty(q.Path)
	t.preflight = t.method == http.MethodOptions && isPreflight(q)
	return t
}

// isPreflight reports whether q, with the method OPTIONS, is what a browser sends. A request with
// more than that could do what a rule limits, and could be of a key that is banned.
func isPreflight(q *Request) bool {
	return len(q.Header["Origin"]) > 0 && len(q.Header["Access-Control-Request-Method"]) > 0 &&
		!q.Body && len(q.Header["Cookie"]) == 0 && len(q.Header["Authorization"]) == 0
}

// matches reports whether r applies to q, given that its path was found by the index.
func (r *rule) matches(q *target) bool {
	return r.matchesMethod(q) && r.matchesHost(q.host) && r.matchesExpression(q) &&
		(len(r.Match.Clients) == 0 || contains(r.Match.Clients, q.Client))
}

// matchesMethod reports whether r applies to the method of q. Preflights carry no credentials, so
// that all clients would share a key, and they are not what a limit is meant to count.
func (r *rule) matchesMethod(q *target) bool {
	if len(r.Match.Methods) == 0 {
		return !q.preflight
	}
	return r.names(q.method) || q.method == http.MethodHead && r.names(http.MethodGet)
}

// names reports whether r is for some methods, and method is one of them.
func (r *rule) names(method string) bool { return slices.Contains(r.Match.Methods, method) }

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
