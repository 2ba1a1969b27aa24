package demo

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// config is a stepped bucket in the terms of that demo.
type config struct {
	Capacity float64 `json:"capacity"`
	Rate     float64 `json:"refill_rate"`     // tokens, in each
	Interval float64 `json:"refill_interval"` // seconds
}

// configOf returns l in those terms. A window is like a bucket that gets all of its tokens at once.
func configOf(l headgate.Limit) config {
	rate := l.Refill()
	if rate == 0 {
		rate = l.Capacity()
	}
	return config{float64(l.Capacity()), float64(rate), l.Period().Seconds()}
}

// with returns c with the values of the form.
func (c config) with(form url.Values) (config, error) {
	fields := map[string]*float64{
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
		n, err := strconv.ParseFloat(strings.TrimSpace(values[0]), 64)
		if err != nil || !(n > 0 && n < 1e18) {
			return c, &headgate.InvalidError{Field: name, Value: strconv.Quote(values[0]),
				Want: "a number above 0, such as 10 or 0.5"}
		}
		*into = n
	}
	return c, nil
}

// textFields are the names that the fields have in the text form of a limit.
var textFields = map[string]string{
	"count": "refill_rate", "refill": "refill_rate", "period": "refill_interval",
	"burst": "capacity",
}

// limit returns the exact bucket: 2.5 tokens each second are 5 each 2 seconds.
func (c config) limit() (headgate.Limit, error) {
	interval := decimal(c.Interval)
	every, err := time.ParseDuration(interval + "s")
	if err != nil || every%time.Microsecond != 0 {
		return headgate.Limit{}, &headgate.InvalidError{Field: "refill_interval",
			Value: interval, Want: "seconds with at most 6 decimals, within 285 years"}
	}
	limit, err := headgate.ParseLimit(fmt.Sprintf("%s/%dus burst %s stepped",
		decimal(c.Rate), every.Microseconds(), decimal(c.Capacity)))
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok {
		named := e.Field[strings.LastIndexByte(e.Field, ' ')+1:]
		e.Field = cmp.Or(textFields[named], named)
	}
	return limit, err
}

// decimal returns n without an exponent.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
