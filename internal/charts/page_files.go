package charts

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"
)

// contentTypes are fixed, because those of package mime depend on the system.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Handle serves a page below prefix, which ends with a slash: the files in the directory page of
// dir, and those that all pages share. The file index.html is at prefix itself.
func Handle(mux *http.ServeMux, prefix string, dir embed.FS) {
	entries, err := dir.ReadDir("page")
	if err != nil {
		panic(err) // cannot happen: the files are part of the program
	}
	for _, entry := range entries {
		text, err := dir.ReadFile("page/" + entry.Name())
		if err != nil {
			panic(err) // as above
		}
		pattern := prefix + entry.Name()
		if entry.Name() == "index.html" {
			pattern = prefix + "{$}"
		}
		mux.Handle("GET "+pattern, file(entry.Name(), string(text)))
	}
	for _, name := range []string{"theme.css", "js/dom.js", "js/format.js"} {
		mux.Handle("GET "+prefix+path.Base(name), file(name, read(name)))
	}
}

// file serves one file. Browsers ask each time whether it has changed.
func file(name, text string) http.Handler {
	hash := sha256.Sum256([]byte(text))
	tag := `"` + hex.EncodeToString(hash[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	})
}

// Protect sets the security header fields of a response. A page may load only its own files, and no
// page may frame it.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; "+
		"frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
