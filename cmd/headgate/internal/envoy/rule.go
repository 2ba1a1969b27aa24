package envoy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// stateName names the limits of this package. State belongs to it, the key, the algorithm and the
// length of a window; so consumption survives a change of numbers.
const stateName = "envoy"

// maxSeconds bounds a window: longer ones cannot be counted exactly.
const maxSeconds = (1 << 53) / 1_000_000

// rule is a limit of the configuration, ready to decide.
type rule struct {
	domain string
	key    string // of statistics, below the domain: key_value.key_value
	shown  Limit  // the limit in answers
	limit  headgate.Limit
	window int64 // seconds of a window by units; 0: the limit is in Headgate's text form
	most   int64 // the largest cost

	unlimited bool
	shadow    bool
	quota     bool
	always    bool // hits of descriptors are charged, whether or not they fit
	detailed  bool
	perSecond bool
	replaces  []string
	metadata  map[string]any

	stats *ruleStats
}

var unitNames = [...]string{"UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"}

var unitSeconds = [...]int64{0, 1, 60, 3600, 86400, 30 * 86400, 365 * 86400, 7 * 86400}

// String is the name of u in the protocol.
func (u Unit) String() string {
	if u < 0 || int(u) >= len(unitNames) {
		return strconv.Itoa(int(u))
	}
	return unitNames[u]
}

// seconds is the length of u, or 0 if it is not known.
func (u Unit) seconds() int64 {
	if u < 0 || int(u) >= len(unitSeconds) {
		return 0
	}
	return unitSeconds[u]
}

func unitNamed(s string) Unit {
	for u, name := range unitNames {
		if strings.EqualFold(s, name) {
			return Unit(u)
		}
	}
	return UnitUnknown
}

// setWindow makes r a fixed window of n requests in units.
func (r *rule) setWindow(n uint32, u Unit, multiplier uint32) error {
	seconds := u.seconds()
	if seconds == 0 {
		return fmt.Errorf(
			"rate limit unit is %s; want SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR", u)
	}
	if most := maxSeconds / seconds; int64(multiplier) > most {
		return fmt.Errorf("unit_multiplier is %d; want at most %d with unit %s", multiplier, most,
			u)
	}
	r.window = seconds * max(int64(multiplier), 1)
	r.most = int64(n)
	r.perSecond = u == Second
	r.shown.RequestsPerUnit, r.shown.Unit, r.shown.Multiplier = n, u, multiplier
	r.limit = r.windowOf(max(int64(n), 1)) // a limit of 0 counts its hits as well
	return nil
}

// windowOf returns the limit of n requests that counts in the state of r.
func (r *rule) windowOf(n int64) headgate.Limit {
	return headgate.FixedWindow(n, time.Duration(r.window)*time.Second).Named(stateName)
}

// setText makes r the limit that text describes. Answers show it as the nearest that the protocol
// can say, and by its name.
func (r *rule) setText(text string) error {
	l, err := headgate.ParseLimit(text)
	if err != nil {
		return err
	}
	r.shown.Name = l.Name()
	n, period := l.Rate()
	r.shown.Unit, r.shown.Multiplier, n = protocolUnit(period, n)
	r.shown.RequestsPerUnit = uint32(min(n, math.MaxUint32))
	r.most = l.Capacity()
	r.limit = l.Named(stateName)
	return r.limit.Validate()
}

// protocolUnit is n for each period in units. A period that is not of whole seconds is shown as
// what it grants in a second.
func protocolUnit(period time.Duration, n int64) (u Unit, multiplier uint32, each int64) {
	if period%time.Second != 0 {
		return Second, 0, int64(float64(n) * float64(time.Second) / float64(period))
	}
	seconds := int64(period / time.Second)
	for _, u := range []Unit{Year, Month, Week, Day, Hour, Minute, Second} {
		if seconds%u.seconds() != 0 {
			continue
		}
		if times := seconds / u.seconds(); times == 1 {
			return u, 0, n
		} else if times <= math.MaxUint32 {
			return u, uint32(times), n
		}
	}
	return Year, 0, n
}
