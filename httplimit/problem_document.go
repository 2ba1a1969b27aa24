package httplimit

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/headgate/headgate"
)

// document is a problem document (RFC 9457) of a type that
// draft-ietf-httpapi-ratelimit-headers-10 defines.
type document struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// writeDenial is the default of Options.Denied.
func writeDenial(w http.ResponseWriter, _ *http.Request, denied []headgate.Decision) {
	p := document{
		Type:   problemTypes + "quota-exceeded",
		Title:  "Request cannot be satisfied as assigned quota has been exceeded",
		Status: http.StatusTooManyRequests,
	}
	for _, d := range denied {
		p.Violated = append(p.Violated, d.Limit.Name())
	}
	d := headgate.Strictest(denied)
	p.Detail = "The limit " + d.Limit.Name() + " can never grant a request of this cost."
	if d.RetryAfter != headgate.Never {
		p.Detail = "The limit " + d.Limit.Name() + " is exceeded. Retry in " +
			strconv.FormatInt(seconds(d.RetryAfter), 10) + " s."
	}
	p.write(w)
}

func denials(ds []headgate.Decision) []headgate.Decision {
	return slices.DeleteFunc(slices.Clone(ds), headgate.Decision.Allowed)
}

func writeUnavailable(w http.ResponseWriter) {
	document{
		Type:   problemTypes + "temporary-reduced-capacity",
		Title:  "Request cannot be satisfied due to temporary server capacity constraints",
		Status: http.StatusServiceUnavailable,
		Detail: "The server cannot check the limits of this request at the moment.",
	}.write(w)
}

func (p document) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot happen: strings and a number
	}
	h := w.Header()
	// Fields about the page that is not sent. Fields that an outer handler set for every
	// response stay.
	for _, stale := range []string{"Content-Length", "Content-Range", "ETag", "Last-Modified"} {
		h.Del(stale)
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}
