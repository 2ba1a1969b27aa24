package proxy

import (
	"context"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/http/bodies"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/usage"
)

// This file reads the costs that are in bodies. Both bodies pass unchanged.

// smallBody is the largest body that is read without asking whether anything is left of the budget.
const smallBody = 16 << 10

// expect charges question by what the body of the request says. It reads a part of the body, which
// is passed on with the rest. A large body is not read for a key that has no tokens left: that is
// denied by the estimate.
func (x *exchange) expect(ctx context.Context, question *rules.Question) {
	switch {
	case x.length == 0:
		question.Expect(usage.Request{})
	case x.length > 0 && x.length <= smallBody || !question.Exhausted(ctx):
		x.peeked = bodies.New(x.body)
		said, whole := usage.Peek(x.peeked, x.length)
		x.passed = whole
		x.peeked.Pass()
		question.Expect(said)
	}
}

// readUsage reads the usage of a response while its body passes, if a rule needs it.
func (x *exchange) readUsage(r *http.Response) {
	if x.admission.ReadsUsage() && r.StatusCode != http.StatusSwitchingProtocols {
		x.usage = usage.NewBody(r)
		r.Body = x.usage
	}
}

// answer returns what was seen of the response.
func (x *exchange) answer() usage.Answer {
	switch {
	case x.usage != nil:
		return x.usage.Answer()
	case x.response != nil:
		return usage.Answer{Failed: x.response.StatusCode >= http.StatusBadRequest}
	}
	return usage.Answer{Failed: x.unsent}
}
