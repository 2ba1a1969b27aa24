package proxy

import (
	"net/http"

	"github.com/headgate/headgate/internal/usage"
)

// This file reads the costs that are in bodies. Both bodies pass unchanged.

// expected returns what the body of the request says. It reads a part of the body, which is passed
// on with the rest.
func (x *exchange) expected() (said usage.Request) {
	if x.length != 0 {
		said, x.passed = usage.Peek(x.body, x.length)
	}
	return said
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
