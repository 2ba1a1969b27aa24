package httplimit

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/concurrency"
)

// once returns a copy of r that http.Transport does not send again if a connection breaks.
func once(r *http.Request) *http.Request {
	r = r.WithContext(r.Context())
	r.GetBody = nil
	none := r.Body == nil || r.Body == http.NoBody
	if none && slices.Contains([]string{"", "GET", "HEAD", "OPTIONS"}, r.Method) {
		r.Body = io.NopCloser(strings.NewReader("")) // HTTP/1.1 sends none, HTTP/2 an empty one
	}
	return r
}

// answered records the response to r, which has arrived if there is one.
func (t *Transport) answered(
	r *http.Request, key string, response *http.Response, permit *concurrency.Permit,
) {
	recorded := false
	defer func() {
		if !recorded { // after a panic of Observe, nobody else closes it
			_ = response.Body.Close()
		}
	}()
	requested := requestedPause(response.StatusCode, response.Header, time.Now())
	t.pauses.Answered(r.Context(), r, key, requested, permit)
	recorded = true
}
