package answer

import (
	"net/http"
	"slices"
	"strings"
)

// exposed are the fields that pages may read.
var exposed = strings.Join(append(FieldNames(), "X-Should-Retry", "Grpc-Status", "Grpc-Message"),
	", ")

// ForPages lets the page that sent r read the answer with these fields, if its origin is one of
// origins. A "*" among them stands for all pages, but not for requests with cookies.
func ForPages(fields http.Header, r *http.Request, origins []string) {
	origin, allowed := r.Header.Get("Origin"), "*"
	if origin == "" || len(origins) == 0 {
		return
	}
	fields.Add("Vary", "Origin")
	switch {
	case slices.Contains(origins, origin):
		allowed = origin
		fields.Set("Access-Control-Allow-Credentials", "true")
	case !slices.Contains(origins, "*"):
		return
	}
	fields.Set("Access-Control-Allow-Origin", allowed)
	fields.Set("Access-Control-Expose-Headers", exposed)
}
