package rules

import "strings"

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
	t := target{Request: q, method: strings.ToUpper(q.Method), host: cleanHost(q.Host)}
	t.path, t.slash = cleanPath(q.Path)
	t.dotted, t.empty = withDots(q.Path), withEmpty(q.Path)
	return t
}
