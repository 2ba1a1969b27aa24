package replay

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// defaultPeriods are the default of [SizeConfig.Periods].
func defaultPeriods() []time.Duration {
	return []time.Duration{time.Second, 10 * time.Second, time.Minute, 15 * time.Minute, time.Hour}
}

// maxFamilies bounds the periods, and the rates.
const maxFamilies = 20

// SizeConfig configures [Size]. Only Reading.By is required. Periods and Rates must be valid.
type SizeConfig struct {
	Reading

	// Periods are the periods for which limits of the form n/period are found. Default:
	// defaultPeriods.
	Periods []time.Duration

	// Rates are token buckets whose rate is kept, while the smallest burst is found. Default:
	// the rates of the proposals, and of the limit with reserve: see [SizeReport.Needed].
	Rates []headgate.Limit

	// Searching, if not nil, is called once, after all logs are read.
	Searching func()
}

// shares are what limits may deny, in ten-thousandths of the requests.
var shares = []int64{0, 1, 10, 100}

// Size finds the smallest token buckets that logs need: those that deny at most 0, 0.01, 0.1 and
// 1% of the requests. The results are exact: [Run] denies the same requests, and a bucket of one
// token less denies more than the share.
//
// The logs are read once. Memory grows with the number of different keys (about 200 bytes each)
// and by 1 to 4 bytes for most requests. Errors are those of Run.
func Size(ctx context.Context, c SizeConfig, logs ...Log) (*SizeReport, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	s := &sizing{
		count:  count{names: newKeyIDs()},
		config: c, history: newHistory(),
	}
	sources, err := read(ctx, c.Reading, sink{names: s.names, use: s.add}, logs)
	if err != nil {
		return nil, err
	}
	if c.Searching != nil {
		c.Searching()
	}
	traffic, err := s.traffic(c.By, sources)
	if err != nil {
		return nil, err
	}
	s.report = &SizeReport{
		Traffic: traffic, Periods: []SmallestLimits{}, Rates: []SmallestLimits{},
		Proposals: []Proposal{}, Caveats: []Caveat{},
	}
	if traffic.Requests == 0 {
		return s.report, nil
	}
	if err := s.fit(ctx); err != nil {
		return nil, err
	}
	return s.report, nil
}

// fill sets the defaults of c, and returns an error if it is invalid.
func (c *SizeConfig) fill() error {
	if len(c.Periods) == 0 {
		c.Periods = defaultPeriods()
	}
	if n := max(len(c.Periods), len(c.Rates)); n > maxFamilies {
		return &headgate.InvalidError{
			Field: "periods and rates", Value: strconv.Itoa(n),
			Want: fmt.Sprintf("at most %d of each", maxFamilies),
		}
	}
	for _, p := range c.Periods {
		if p > maxPeriod {
			return &headgate.InvalidError{
				Field: "period", Value: p.String(), Want: "at most " + maxPeriod.String(),
			}
		}
	}
	for _, l := range c.Rates {
		if l.Algorithm() != headgate.AlgorithmTokenBucket {
			return &headgate.InvalidError{
				Field: "rate", Value: l.String(), Want: "a token bucket, such as 10/s",
			}
		}
	}
	return nil
}

// maxPeriod bounds periods, so that sizes of any number of requests can be counted exactly.
const maxPeriod = 366 * 24 * time.Hour

// sizing is one call of Size.
type sizing struct {
	count

	config  SizeConfig
	history *history
	times   logTimes
	report  *SizeReport

	standOut []uint32 // keys
	periods  *search
	chosen   int // the period of the proposals
}

func (s *sizing) add(r record) error {
	s.count.add(r)
	if s.asked[r.key] > math.MaxUint32 {
		return fmt.Errorf("size: key %q has more than %d requests; size a shorter log",
			validText(s.names.keys[r.key]), uint32(math.MaxUint32))
	}
	s.times.add(r.at)
	s.history.add(r)
	return nil
}

// fit fills the report.
func (s *sizing) fit(ctx context.Context) error {
	var periods []family
	for _, p := range s.config.Periods {
		periods = append(periods, family{period: p.Microseconds()})
	}
	var err error
	if s.periods, err = s.search(ctx, periods); err != nil {
		return err
	}
	s.chosen = s.choose()
	if s.dropOrdinary() {
		if s.periods, err = s.search(ctx, periods); err != nil {
			return err
		}
	}
	if err := s.propose(ctx); err != nil {
		return err
	}
	if err := s.fitRates(ctx); err != nil {
		return err
	}
	if err := s.findTimes(ctx); err != nil {
		return err
	}
	s.caveats()
	return nil
}

// search finds the smallest sizes of families, of all keys and of those that do not stand out.
func (s *sizing) search(ctx context.Context, families []family) (*search, error) {
	n := newNeeds(families, len(s.names.keys))
	if err := s.history.walk(ctx, n); err != nil {
		return nil, err
	}
	found := &search{needs: n.sizes, history: s.history}
	if s.periods == nil {
		s.standOut = allStandOut(n.sizes, s.usable(families))
	}
	found.standOut = s.standOut
	for i, f := range families {
		found.add(f, int64(slices.Max(n.sizes[i])), targets(s.requests))
	}
	if len(s.standOut) > 0 {
		s.addRest(found)
	}
	return found, found.run(ctx)
}

// addRest adds the families of found again, with the keys that stand out set aside.
func (s *sizing) addRest(found *search) {
	requests := s.requests
	for _, k := range s.standOut {
		requests -= s.asked[k]
	}
	for i, needs := range found.needs {
		most := uint32(0)
		for k, n := range needs {
			if n > most && !slices.Contains(s.standOut, uint32(k)) {
				most = n
			}
		}
		f := found.families[i]
		f.rest = true
		found.add(f, int64(most), targets(requests))
	}
}

// targets returns how many of so many requests a limit may deny.
func targets(requests int64) (targets []target) {
	for _, share := range shares {
		denied := requests/10_000*share + requests%10_000*share/10_000
		targets = append(targets, target{float64(share) / 10_000, denied})
	}
	return targets
}

// fitRates finds the smallest bursts at the rates.
func (s *sizing) fitRates(ctx context.Context) error {
	var rates []family
	for _, l := range s.rates() {
		f := family{period: l.Period().Microseconds(), rate: l.Refill()}
		if l.Refill() > 0 && !slices.Contains(rates, f) {
			rates = append(rates, f)
		}
	}
	if len(rates) == 0 {
		return nil
	}
	found, err := s.search(ctx, rates)
	if err != nil {
		return err
	}
	s.report.Rates = s.fits(found)
	return nil
}

// rates returns the rates of the configuration, or else of the proposals and with reserve.
func (s *sizing) rates() []headgate.Limit {
	if len(s.config.Rates) > 0 {
		return s.config.Rates
	}
	var rates []headgate.Limit
	for _, p := range s.report.Proposals {
		rates = append(rates, p.Limit)
	}
	_, reserve := s.report.Needed()
	return append(rates, reserve)
}
