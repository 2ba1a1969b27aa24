package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/headgate/headgate/cmd/headgate/internal/http/bodies"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/usage"
)

// This file reads the costs that are in bodies. Both bodies pass unchanged, unless a rule asks
// streams for their usage.

// smallBody is the largest body that is read without asking whether anything is left of the budget.
const smallBody = 16 << 10

// expect adds to q what the body of r says. It reads a part of the body, which is passed on with
// the rest. A large body is not read for a key that has no tokens left: that is denied by the
// estimate. If no answer to r would report its tokens, it returns a status and why r is refused.
func (x *exchange) expect(q *rules.Question, r *http.Request) (status int, why string) {
	if isWebsocket(r.Header) && q.CountsTokens() {
		// After this status, Codex sends its requests by POST.
		return http.StatusUpgradeRequired,
			"The tokens of a websocket cannot be counted. Send each request by POST."
	}
	var said usage.Request
	switch {
	case !q.NeedsBody():
		return 0, ""
	case x.length == 0:
	case (x.length < 0 || x.length > smallBody) && q.Exhausted(r.Context()):
		return 0, ""
	default:
		said = x.peek(r.Header)
	}
	q.Expect(said)
	if said.Background && q.CountsTokens() {
		return http.StatusBadRequest, "The tokens of a background answer cannot be counted. " +
			"Send the request without background."
	}
	if strings.HasSuffix(r.URL.Path, "/chat/completions") && q.IncludesUsage() {
		if d := said.Details(); d.Stream && !d.StreamOptions {
			x.includeUsage()
		}
	}
	return 0, ""
}

// includeUsage adds to the body, which is an object with members, that its stream reports usage.
func (x *exchange) includeUsage() {
	const start = `{"stream_options":{"include_usage":true},`
	_, _ = io.CopyN(io.Discard, x.passed, 1) // the brace
	x.passed = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(start), x.passed), x.passed}
	if x.length > 0 {
		x.length += int64(len(start)) - 1
	}
}

// maxHeld is the longest body of a request that waits.
const maxHeld = 256 << 10

// Arrive implements [rules.Arrival]. Only at the end of the body, the server sees a client leave.
func (x *exchange) Arrive() bool {
	if x.peeked == nil {
		x.peeked = bodies.NewHeld(x.body)
		x.body.readAhead(true)
		start, _ := io.ReadAll(io.LimitReader(x.peeked, maxHeld)) // all of it, if it has ended
		x.body.readAhead(false)
		x.passed = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(start)), x.peeked} // which frees it at its end
	}
	return x.body.ended.Load()
}

// peek reads the beginning of the body, of a request with this header.
func (x *exchange) peek(h http.Header) (said usage.Request) {
	x.peeked = bodies.New(x.body)
	x.body.readAhead(true)
	said, x.passed, _ = usage.Peek(h, x.peeked, x.length)
	x.body.readAhead(false)
	x.peeked.Pass()
	return said
}

// release ends the hold of what was read ahead.
func (x *exchange) release() {
	if x.peeked != nil {
		x.peeked.Release()
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
