package demo

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"strconv"

	"github.com/headgate/headgate"
)

// This file has the API of the demo in the Redis documentation, whose bucket is the left lane:
// POST /test sends a request, POST /config changes the bucket.

type testAnswer struct {
	Allowed   bool   `json:"allowed"`
	Remaining int64  `json:"remaining"`
	Config    config `json:"config"`
}

type configAnswer struct {
	Success bool   `json:"success"`
	Config  config `json:"config"`
}

func (l *lane) documented() config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config
}

// postTest sends one request through the left lane alone.
func (d *Demo) postTest(r *http.Request) (testAnswer, error) {
	if err := wantEmptyForm(r); err != nil {
		return testAnswer{}, err
	}
	l := d.lanes[0]
	begun, c := l.results(), l.documented()
	o, err := l.take(r.Context())
	if err != nil {
		return testAnswer{}, err
	}
	l.note(begun, []outcome{o}, d.clock.offset())
	return testAnswer{o.decision.Allowed(), o.decision.Remaining, c}, nil
}

// postConfig makes the left lane a stepped bucket, as that of the documentation is. Fields that the
// body leaves out keep their values.
func (d *Demo) postConfig(r *http.Request) (configAnswer, error) {
	form, err := readForm(r)
	if err != nil {
		return configAnswer{}, err
	}
	c, err := d.configure(r.Context(), d.lanes[0], form)
	return configAnswer{true, c}, err
}

// configure changes the fields that the body gives.
func (d *Demo) configure(ctx context.Context, l *lane, form url.Values) (config, error) {
	l.configuring.Lock()
	defer l.configuring.Unlock()
	before := l.documented()
	c, err := before.with(form)
	if err != nil || len(form) == 0 {
		return c, err
	}
	limit, err := c.limit()
	if err != nil {
		return c, err
	}
	if err := l.carryOver(ctx, d.store, limit); err != nil {
		return c, err
	}
	return c, l.change(limit, c)
}

// carryOver charges a stepped bucket with what is consumed of a limit of another algorithm: the
// same fraction, rounded up, as a bucket keeps by itself when only its numbers change.
func (l *lane) carryOver(ctx context.Context, store headgate.Store, to headgate.Limit) error {
	l.mu.Lock()
	from := l.limit
	l.mu.Unlock()
	if from.Algorithm() == headgate.AlgorithmSteppedTokenBucket {
		return nil
	}
	peeked, err := l.limiter.Peek(ctx, key)
	if err != nil {
		return err
	}
	next, err := headgate.NewLimiter(store, to.Named(l.name))
	if err != nil {
		return err
	}
	if err := next.Reset(ctx, key); err != nil {
		return err
	}
	used := max(0, from.Capacity()-peeked.Remaining)
	if used == 0 {
		return nil
	}
	_, err = next.AllowN(ctx, key, rescaled(used, from.Capacity(), to.Capacity()))
	return err
}

// rescaled returns used of capacity as part of another capacity, rounded up.
func rescaled(used, capacity, other int64) int64 {
	product := new(big.Int).Mul(big.NewInt(used), big.NewInt(other))
	product.Add(product, big.NewInt(capacity-1))
	return product.Div(product, big.NewInt(capacity)).Int64()
}

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// readForm reads the values in the body, a form or a JSON object.
func readForm(r *http.Request) (url.Values, error) {
	if r.URL.RawQuery != "" {
		return nil, &headgate.InvalidError{Field: "query", Value: strconv.Quote(r.URL.RawQuery),
			Want: "none; numbers are sent in the body"}
	}
	if r.ContentLength == 0 {
		return url.Values{}, nil
	}
	if err := wantType(r, formType, jsonType); err != nil {
		return nil, err
	}
	if wantType(r, jsonType) == nil {
		return readObject(r)
	}
	if err := r.ParseForm(); err != nil {
		return nil, &headgate.InvalidError{Field: "form", Value: "not understood",
			Want: "capacity=10&refill_rate=1&refill_interval=1"}
	}
	return r.PostForm, nil
}

// readObject reads a JSON object of numbers, or of numbers as text.
func readObject(r *http.Request) (url.Values, error) {
	var object map[string]json.Number // which a text may hold, too
	err := readJSON(r, &object, `{"capacity": 10, "refill_rate": 1, "refill_interval": 1}`)
	if err != nil {
		return nil, err
	}
	form := url.Values{}
	for name, value := range object {
		form.Set(name, value.String())
	}
	return form, nil
}

// wantEmptyForm accepts no body, or one with nothing in it.
func wantEmptyForm(r *http.Request) error {
	form, err := readForm(r)
	form.Del("{}") // curl -d sends it as a form
	if err == nil && len(form) > 0 {
		err = &headgate.InvalidError{Field: "body", Value: "not empty", Want: "nothing, or {}"}
	}
	return err
}
