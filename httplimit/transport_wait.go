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
		if !recorded { // after a panic of Pause or Observe, nobody else closes it
			_ = response.Body.Close()
		}
	}()
	t.pauses.Answered(r.Context(), r, key, t.pause(key, response), permit)
	recorded = true
}

// pause returns the pause of key after response.
func (t *Transport) pause(key string, response *http.Response) (d time.Duration) {
	if t.options.Pause != nil {
		d = t.options.Pause(response)
	}
	if d <= 0 {
		d = requestedPause(response.StatusCode, response.Header, time.Now())
	}
	if response.StatusCode != http.StatusTooManyRequests {
		t.pauses.Passed(key)
	} else if d == 0 {
		d = t.pauses.BackOff(key)
	}
	return d
}
