package demo

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// field is one field of a header.
type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// spelled returns the name of a field as its standard writes it. Package net/http keeps names in
// another case, which means the same.
func spelled(name string) string { return strings.ReplaceAll(name, "Ratelimit", "RateLimit") }

// headerFields returns the header fields of the response to a request that d decided at now,
// sorted by name.
func headerFields(now time.Time, d headgate.Decision) []field {
	h := http.Header{}
	httplimit.AllFields.Write(h, now, d)
	fields := []field{}
	for name, values := range h {
		for _, value := range values {
			fields = append(fields, field{spelled(name), value})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	return fields
}
