package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/http/httpapi"
	"github.com/headgate/headgate/cmd/headgate/internal/http/problem"
	"github.com/headgate/headgate/internal/charts"
)

//go:embed page
var pageFiles embed.FS

// policy lets the page load only its own files, and lets no page frame it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"object-src 'none'"

// page serves the files of the page. They hold no data, so that they need no token.
func (h *Handler) page() {
	h.mux.HandleFunc("GET /console", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "console/") // relative: a proxy may serve it below another path
		w.WriteHeader(http.StatusMovedPermanently)
	})
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // cannot happen: the name is valid
	}
	h.files("/console/", files)
	for name, text := range charts.Shared() {
		h.mux.Handle("GET /console/"+name, h.file(name, text))
	}
	h.mux.Handle("/console/", h.data(noSuchPath))
}

func noSuchPath(http.ResponseWriter, *http.Request) error {
	return &problem.Problem{Status: http.StatusNotFound,
		Detail: "the path does not exist or does not allow this method; want /console/"}
}

// files serves each of files below path.
func (h *Handler) files(path string, files fs.FS) {
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		pattern := path + name
		if before, isIndex := strings.CutSuffix(pattern, "index.html"); isIndex {
			pattern = before + "{$}"
		}
		h.mux.Handle("GET "+pattern, h.file(name, string(text)))
		return nil
	})
	if err != nil {
		panic(err) // cannot happen: the files are part of the program
	}
}

// file serves one file. Browsers ask each time whether it has changed.
func (h *Handler) file(name, text string) http.Handler {
	hash := sha256.Sum256([]byte(text))
	tag := `"` + hex.EncodeToString(hash[:8]) + `"`
	return h.guarded(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, strings.NewReader(text))
	})
}

// data serves what no browser may keep, and answers with the errors of f.
func (h *Handler) data(f handlerFunc) http.Handler {
	return h.guarded(func(w http.ResponseWriter, r *http.Request) {
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

// guarded sets the header fields of all answers. Beyond loopback, a server without tokens has no
// console.
func (h *Handler) guarded(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !h.IsOn() {
			header.Set("Cache-Control", "no-store")
			httpapi.WriteError(w, &problem.Problem{Status: http.StatusNotFound,
				Detail: "the console is only for this machine, because there are no tokens; " +
					"set api.tokens in the rules file, or set --http to a loopback address"})
			return
		}
		f(w, r)
	})
}
