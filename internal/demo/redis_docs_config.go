package demo

import (
	"encoding/json"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// config is a stepped bucket in the terms of that demo.
type config struct {
	Capacity json.Number `json:"capacity"`
	Rate     json.Number `json:"refill_rate"`     // tokens, in each
	Interval json.Number `json:"refill_interval"` // seconds
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

// with returns c with the values of the form.
func (c config) with(form url.Values) (config, error) {
	fields := map[string]*json.Number{
		"capacity": &c.Capacity, "refill_rate": &c.Rate, "refill_interval": &c.Interval,
	}
	for name, values := range form {
		into := fields[name]
		if into == nil {
			return c, &headgate.InvalidError{Field: "field", Value: strconv.Quote(name),
				Want: "capacity, refill_rate and refill_interval"}
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
		return headgate.Limit{}, &headgate.InvalidError{Field: "capacity",
			Value: string(c.Capacity), Want: "a whole number of at least 1"}
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
	const most = int64(1<<63-1) / int64(time.Microsecond)
	if !micros.IsInt() || !micros.Num().IsInt64() || micros.Num().Int64() > most {
		return headgate.Limit{}, &headgate.InvalidError{Field: "refill_interval",
			Value: string(c.Interval),
			Want:  "a time after which whole tokens arrive in whole microseconds, within 285 years"}
	}
	if !refill.IsInt64() {
		return headgate.Limit{}, &headgate.InvalidError{Field: "refill_rate",
			Value: string(c.Rate), Want: "a smaller number"}
	}
	every := time.Duration(micros.Num().Int64()) * time.Microsecond
	limit := headgate.SteppedTokenBucket(refill.Int64(), every).Burst(capacity.Num().Int64())
	return limit, limit.Validate()
}

// decimal reads a number above 0, such as 10, 0.5 or 2.50, as it is written.
func decimal(field, text string) (*big.Rat, error) {
	bad := &headgate.InvalidError{Field: field, Value: strconv.Quote(text),
		Want: "a number above 0, such as 10 or 0.5"}
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
