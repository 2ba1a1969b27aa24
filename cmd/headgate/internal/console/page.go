package console

import (
	"embed"
	"errors"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/internal/charts"
	"github.com/headgate/headgate/internal/problem"
)

//go:embed page
var pageFiles embed.FS

// page serves the files of the page. They hold no data, so that they need no token.
func (h *Handler) page() {
	h.mux.HandleFunc("GET /console", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "console/") // relative: a proxy may serve it below another path
		w.WriteHeader(http.StatusMovedPermanently)
	})
	charts.Handle(h.mux, "/console/", pageFiles)
	h.mux.Handle("/console/", h.data(noSuchPath))
}

func noSuchPath(http.ResponseWriter, *http.Request) error {
	return &problem.Problem{Status: http.StatusNotFound,
		Detail: "the path does not exist or does not allow this method; want /console/"}
}

// data serves what no browser may keep, and answers with the errors of f.
func (h *Handler) data(f handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := f(w, r); err != nil {
			httpapi.WriteError(w, unanswered(err))
		}
	})
}

// unanswered returns the problem for an error of a request that changes nothing.
func unanswered(err error) error {
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return err
	}
	return httpapi.Unavailable(err, "this cannot be shown now; try again when it answers")
}

// ServeHTTP serves a request for /console/. Beyond loopback, a server without tokens has no
// console.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	charts.Protect(w.Header())
	if h.IsOn() {
		h.mux.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	httpapi.WriteError(w, &problem.Problem{Status: http.StatusNotFound,
		Detail: "the console is only for this machine, because there are no tokens; " +
			"set api.tokens in the rules file, or set --http to a loopback address"})
}
