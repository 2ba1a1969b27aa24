package demo

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// This file has the API of the demo in the Redis documentation, whose bucket is the left lane:
// POST /test sends a request, POST /config changes the bucket.

// config is a stepped bucket in the terms of that demo.
type config struct {
	Capacity json.Number `json:"capacity"`
	Rate     json.Number `json:"refill_rate"`     // tokens, in each
	Interval json.Number `json:"refill_interval"` // seconds
}

type testAnswer struct {
	Allowed   bool   `json:"allowed"`
	Remaining int64  `json:"remaining"`
	Config    config `json:"config"`
}

type configAnswer struct {
	Success bool   `json:"success"`
	Config  config `json:"config"`
}

// configOf returns l in those terms. A window is like a bucket that gets all of its tokens at once.
func configOf(l headgate.Limit) config {
	rate := l.Refill()
	if rate == 0 {
		rate = l.Capacity()
	}
	return config{
		Capacity: json.Number(strconv.FormatInt(l.Capacity(), 10)),
		Rate:     json.Number(strconv.FormatInt(rate, 10)),
		Interval: json.Number(strconv.FormatFloat(l.Period().Seconds(), 'f', -1, 64)),
	}
}

func (l *lane) documented() config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config
}

// postTest sends one request through the left lane alone.
func (d *Demo) postTest(w http.ResponseWriter, r *http.Request) {
	if err := wantEmptyForm(r); err != nil {
		fail(w, err)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	l := d.lanes[0]
	begun, c := l.results(), l.documented()
	var o outcome
	err := d.inSlot(ctx, func() (err error) {
		o, err = l.take(ctx)
		return err
	})
	if err != nil {
		fail(w, err)
		return
	}
	l.note(begun, []outcome{o}, d.clock.offset())
	answer(w, testAnswer{o.decision.Allowed(), o.decision.Remaining, c})
}

// postConfig makes the left lane a stepped bucket, as that of the documentation is. Fields that the
// body leaves out keep their values.
func (d *Demo) postConfig(w http.ResponseWriter, r *http.Request) {
	form, err := readForm(r)
	if err != nil {
		fail(w, err)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	c, err := d.configure(ctx, d.lanes[0], form)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, configAnswer{true, c})
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
	if err := d.inSlot(ctx, func() error { return l.carryOver(ctx, d.clock.store, limit) }); err != nil {
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
	if from.Algorithm() == headgate.AlgorithmStepped {
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
		return nil, nil
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
	var object map[string]input
	err := readJSON(r, &object, `{"capacity": 10, "refill_rate": 1, "refill_interval": 1}`)
	if err != nil {
		return nil, err
	}
	form := url.Values{}
	for name, value := range object {
		form.Set(name, string(value))
	}
	return form, nil
}

// wantEmptyForm accepts no body, or one with nothing in it.
func wantEmptyForm(r *http.Request) error {
	form, err := readForm(r)
	if err == nil && len(form) > 0 {
		err = &headgate.InvalidError{Field: "body", Value: "not empty", Want: "nothing, or {}"}
	}
	return err
}

// with returns c with the values of the form.
func (c config) with(form url.Values) (config, error) {
	fields := map[string]*json.Number{"capacity": &c.Capacity, "refill_rate": &c.Rate, "refill_interval": &c.Interval}
	for name, values := range form {
		into := fields[name]
		if into == nil {
			return c, &headgate.InvalidError{Field: "field", Value: strconv.Quote(name), Want: "capacity, refill_rate and refill_interval"}
		}
		if len(values) != 1 {
			return c, &headgate.InvalidError{Field: name, Value: "given twice", Want: "one number"}
		}
		n, err := decimal(name, strings.TrimSpace(values[0]))
		if err != nil {
			return c, err
		}
		*into = json.Number(written(n))
	}
	return c, nil
}

// limit returns the exact bucket: 2.5 tokens each second are 5 each 2 seconds.
func (c config) limit() (headgate.Limit, error) {
	capacity, err := decimal("capacity", string(c.Capacity))
	if err != nil {
		return headgate.Limit{}, err
	}
	if !capacity.IsInt() || !capacity.Num().IsInt64() {
		return headgate.Limit{}, &headgate.InvalidError{Field: "capacity", Value: string(c.Capacity), Want: "a whole number of at least 1"}
	}
	rate, err := decimal("refill_rate", string(c.Rate))
	if err != nil {
		return headgate.Limit{}, err
	}
	interval, err := decimal("refill_interval", string(c.Interval))
	if err != nil {
		return headgate.Limit{}, err
	}
	// rate is refill/steps in lowest terms, so refill arrive each steps intervals.
	refill, steps := rate.Num(), new(big.Rat).SetInt(rate.Denom())
	micros := steps.Mul(steps, interval).Mul(steps, big.NewRat(1e6, 1))
	if !micros.IsInt() || !micros.Num().IsInt64() || micros.Num().Int64() > int64(1<<63-1)/int64(time.Microsecond) {
		return headgate.Limit{}, &headgate.InvalidError{Field: "refill_interval", Value: string(c.Interval),
			Want: "a time after which whole tokens arrive in whole microseconds, within 285 years"}
	}
	if !refill.IsInt64() {
		return headgate.Limit{}, &headgate.InvalidError{Field: "refill_rate", Value: string(c.Rate), Want: "a smaller number"}
	}
	limit := headgate.SteppedTokenBucket(refill.Int64(), time.Duration(micros.Num().Int64())*time.Microsecond).Burst(capacity.Num().Int64())
	return limit, limit.Validate()
}

// decimal reads a number above 0, such as 10, 0.5 or 2.50, as it is written.
func decimal(field, text string) (*big.Rat, error) {
	bad := &headgate.InvalidError{Field: field, Value: strconv.Quote(text), Want: "a number above 0, such as 10 or 0.5"}
	if len(text) > 32 || strings.Trim(text, "0123456789.") != "" {
		return nil, bad
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok || n.Sign() <= 0 {
		return nil, bad
	}
	return n, nil
}

// written is n with all of its decimals and no more.
func written(n *big.Rat) string {
	digits, _ := n.FloatPrec()
	return n.FloatString(digits)
}
