package httplimit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/pause"
	"github.com/headgate/headgate/internal/usage"
)

// TokenCost is what a request to a model costs: a weighted sum of the tokens that it uses.
type TokenCost struct {
	// Estimate is reserved for the answer of a request without a field that bounds it, such as
	// max_tokens. At least 1.
	Estimate int64

	// Input is the weight of the tokens that the model reads, Output of the tokens that it writes,
	// and Cached of the tokens that the provider reads from its cache. Each is from 0 to 1,000,000,
	// and one of them above 0.
	Input, Output, Cached int64
}

func (c *TokenCost) cost() usage.Cost {
	return usage.Cost{Estimate: c.Estimate, Input: c.Input, Output: c.Output, Cached: c.Cached}
}

// estimate returns what to reserve for r, which is its cost if that is not one of tokens. It is at
// most what the limits can hold. The request that it returns has the body of r.
func (t *Transport) estimate(r *http.Request, key string) (*http.Request, int64, error) {
	cost := costOf(r, t.options.Cost)
	if t.options.Tokens == nil || cost == 0 {
		return r, cost, nil
	}
	limits, err := t.limiter.Limits(r.Context(), key)
	if err != nil {
		return r, 0, t.pauses.Failed(r.Context(), r, err)
	}
	var expected usage.Request
	if r.Body != nil && r.Body != http.NoBody {
		body := r.Body
		stop := context.AfterFunc(r.Context(), func() { _ = body.Close() })
		defer stop()
		r = r.WithContext(r.Context())
		expected, r.Body, err = usage.Peek(r.Header, body, cmp.Or(r.ContentLength, -1))
	}
	if err != nil {
		return r, 0, cmp.Or(r.Context().Err(), err)
	}
	cost = t.options.Tokens.cost().Before(expected)
	for _, l := range limits {
		cost = min(cost, l.Capacity())
	}
	return r, cost, nil
}

// settleBy makes response settle what was reserved for r: once its body has been read or closed, or
// at once if there is none.
func (t *Transport) settleBy(
	response *http.Response, err error, r *http.Request, b *headgate.Reservation, reserved int64,
) {
	settle := func(seen usage.Answer) {
		used, _ := t.options.Tokens.cost().After(reserved, seen)
		ctx, cancel := pause.Recording(r.Context())
		defer cancel()
		await.Do(ctx, func() {
			err := b.Commit(ctx, used)
			_ = t.pauses.Failed(r.Context(), r, err) //nolint:contextcheck // was r canceled?
		})
	}
	switch {
	case err != nil:
		settle(usage.Answer{Failed: usage.Unsent(err)})
	case response.StatusCode != http.StatusSwitchingProtocols:
		response.Body = &settlingBody{Body: usage.NewBody(response), settle: settle}
	}
}

// settlingBody is the body of a response that settles a cost once it has been read or closed.
type settlingBody struct {
	*usage.Body

	settle func(usage.Answer)
	once   sync.Once
}

// Read implements io.Reader. It returns io.EOF without data, after the cost is settled, so that
// the data before it does not wait for the store.
func (b *settlingBody) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if n > 0 && errors.Is(err, io.EOF) {
		return n, nil
	}
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *settlingBody) Close() error {
	defer b.end()
	return b.Body.Close()
}

func (b *settlingBody) end() { b.once.Do(func() { b.settle(b.Answer()) }) }
