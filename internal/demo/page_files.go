package demo

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"time"

	"github.com/headgate/headgate/internal/charts"
)

//go:embed page
var files embed.FS

// contentTypes are fixed, because those of package mime depend on the system.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// addFiles serves each file of the page at its name, and the page itself at /.
func addFiles(mux *http.ServeMux) {
	entries, err := files.ReadDir("page")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, entry := range entries {
		content, err := files.ReadFile("page/" + entry.Name())
		if err != nil {
			panic(err) // as above
		}
		serve := file(entry.Name(), content)
		mux.Handle("GET /"+entry.Name(), serve)
		if entry.Name() == "index.html" {
			mux.Handle("GET /{$}", serve)
		}
	}
	for name, text := range charts.Shared() {
		mux.Handle("GET /"+name, file(name, []byte(text)))
	}
}

// file serves one file.
func file(name string, content []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}
