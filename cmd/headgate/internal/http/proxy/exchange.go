package proxy

import (
	"context"
	"io"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/http/answer"
	"github.com/headgate/headgate/cmd/headgate/internal/http/bodies"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/usage"
)

// exchange is a request that is passed on, with its response.
type exchange struct {
	trusted   bool // a trusted proxy says who the client is
	verdict   rules.Verdict
	admission *rules.Admission
	body      *pacedBody
	response  *http.Response // nil until there is one
	unsent    bool           // there is none, as the server cannot be reached

	length int64          // of body; -1: unknown
	peeked *bodies.Reader // what reads it before the decision; nil: nothing does
	passed io.ReadCloser  // all of body, after a part was read; nil: none was
	usage  *usage.Body    // of response; nil: no rule needs it
}

type exchangeKey struct{}

// exchangeOf returns the exchange that a request belongs to.
func exchangeOf(r *http.Request) *exchange {
	return r.Context().Value(exchangeKey{}).(*exchange) //nolint:forcetypeassert // by ServeHTTP
}

// modifyResponse adds the header fields, and charges the costs that are in the response. Fields
// of the server about limits give way, because a client cannot tell two limiters apart.
func modifyResponse(r *http.Response) error {
	x := exchangeOf(r.Request)
	x.response = r
	if answer.Reports(&x.verdict) {
		for _, name := range answer.FieldNames() {
			if name != "Retry-After" { // which is about the server's own answer
				r.Header.Del(name)
			}
		}
		answer.SetFields(r.Header, &x.verdict)
	}
	x.admission.Outcome(r.Request.Context(), r.StatusCode)
	x.admission.Settle(r.Request.Context(), r.Header)
	x.readUsage(r)
	return nil
}

// refused notes the outcome of a request that did not reach the server, because there is no
// connection. A request that the server may have seen stays charged: what it was answered to is
// unknown.
func (x *exchange) refused(ctx context.Context, err error) {
	if usage.Unsent(err) {
		x.unsent = true
		x.admission.Outcome(ctx, http.StatusBadGateway)
	}
}

// end charges the costs that are in the trailer, and releases the permits.
func (x *exchange) end(ctx context.Context) {
	defer x.admission.End(ctx)
	if x.response != nil {
		x.admission.Settle(ctx, x.response.Trailer)
	}
	x.admission.SettleUsage(ctx, x.answer())
}
