package httplimit

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/headgate/headgate"
)

// document is a problem document of RFC 9457, of the types that
// draft-ietf-httpapi-ratelimit-headers-10 defines.
type document struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// problem is the default of Options.Denied.
func problem(w http.ResponseWriter, _ *http.Request, refused []headgate.Decision) {
	p := document{
		Type:   problemTypes + "quota-exceeded",
		Title:  "Request cannot be satisfied as assigned quota has been exceeded",
		Status: http.StatusTooManyRequests,
	}
	for _, d := range refused {
		p.Violated = append(p.Violated, d.Limit.Name())
	}
	if d := headgate.Strictest(refused); d.RetryAfter == headgate.Never {
		p.Detail = "The limit " + d.Limit.Name() + " can never grant a request of this cost."
	} else {
		p.Detail = "The limit " + d.Limit.Name() + " has room for this request in " + strconv.FormatInt(seconds(d.RetryAfter), 10) + " s."
	}
	p.write(w)
}

// refused are the decisions of ds that said no.
func refused(ds []headgate.Decision) []headgate.Decision {
	var no []headgate.Decision
	for _, d := range ds {
		if !d.Allowed() {
			no = append(no, d)
		}
	}
	return no
}

// unavailable answers while the store cannot say.
func unavailable(w http.ResponseWriter) {
	document{
		Type:   problemTypes + "temporary-reduced-capacity",
		Title:  "Request cannot be satisfied due to temporary server capacity constraints",
		Status: http.StatusServiceUnavailable,
		Detail: "The server cannot tell at the moment whether this request is within its limits.",
	}.write(w)
}

func (p document) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot happen: strings and a number
	}
	h := w.Header()
	for _, stale := range []string{"Content-Length", "Content-Range", "ETag", "Last-Modified"} {
		h.Del(stale) // said of a page that is not sent; what a handler around this one does to bodies stays
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
