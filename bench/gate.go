package main

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/headgate/headgate/gate"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// gateStore is the Store of the cells about those that make callers wait.
const gateStore = "gate"

// gateField is every contender that makes callers wait: Take returns when the turn has
// come. Each begins with Burst tokens, or with as few as it can.
func gateField() []Entry {
	return []Entry{
		{Name: headgateName, Open: openGate},
		{Name: xTimeRateName, Open: openXTimeWait},
		{Name: "x/time/rate, burst 1", Open: openXTimeWaitOne},
		{Name: "uber/ratelimit", Open: openUber},
		{Name: "failsafe-go, smooth", Open: openFailsafeSmooth},
		{Name: "failsafe-go, bursty", Open: openFailsafeBursty},
	}
}

// waiting is a contender that makes callers wait.
type waiting func() error

func (w waiting) Take(string) (bool, error) { return true, w() }

func openGate(s Setup) (Contender, error) {
	g, err := gate.New(s.Burst, s.Period())
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return waiting(func() error { return g.Wait(ctx) }), nil
}

func openXTimeWait(s Setup) (Contender, error) {
	return xTimeWait(newXTimeLimiter(s.Terms)), nil
}

func openXTimeWaitOne(s Setup) (Contender, error) {
	return xTimeWait(rate.NewLimiter(rate.Every(s.Every), 1)), nil
}

func xTimeWait(l *rate.Limiter) Contender {
	ctx := context.Background()
	return waiting(func() error { return l.Wait(ctx) })
}

func openUber(s Setup) (Contender, error) {
	l := ratelimit.New(int(s.Burst), ratelimit.Per(s.Period()))
	return waiting(func() error { l.Take(); return nil }), nil
}

func openFailsafeSmooth(s Setup) (Contender, error) {
	return failsafeWait(ratelimiter.NewSmooth[any](uint(s.Burst), s.Period())), nil
}

func openFailsafeBursty(s Setup) (Contender, error) {
	return failsafeWait(ratelimiter.NewBursty[any](uint(s.Burst), s.Period())), nil
}

func failsafeWait(l ratelimiter.RateLimiter[any]) Contender {
	ctx := context.Background()
	return waiting(func() error { return l.AcquirePermit(ctx) })
}

// The terms under which nobody waits, and those under which all do.
const (
	crowdName    = "100 per 100ms, all wait"
	crowdCallers = 16
	crowdLimit   = 100
	crowdPeriod  = 100 * time.Millisecond
)

func openTerms() Terms  { return Terms{Burst: 1_000_000_000, Every: time.Nanosecond} }
func crowdTerms() Terms { return Terms{Burst: crowdLimit, Every: crowdPeriod / crowdLimit} }
