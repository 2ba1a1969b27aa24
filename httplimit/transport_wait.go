package httplimit

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/pause"
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

// answered releases the permit of r, which has arrived if there is a response, and keeps the pause
// that the response asks for. It does so also if r was canceled meanwhile.
func (t *Transport) answered(
	r *http.Request, key string, response *http.Response, permit *concurrency.Permit,
) {
	requested := requestedPause(response.StatusCode, response.Header, time.Now())
	if requested <= 0 && permit == nil {
		return
	}
	ctx, cancel := pause.Recording(r.Context())
	defer cancel()
	recorded := false
	defer func() {
		if !recorded { // after a panic of Observe, nobody else closes it
			_ = response.Body.Close()
		}
	}()
	if permit != nil {
		err := permit.ReleaseAfter(ctx, t.options.Period)
		_ = t.pauses.Failed(r.Context(), r, err) // otherwise it expires
	}
	if requested > 0 {
		t.pauses.Extend(ctx, r, key, requested)
	}
	recorded = true
}
