package main

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// xTimeRate is one golang.org/x/time/rate limiter, which has no keys.
type xTimeRate struct{ l *rate.Limiter }

func openXTimeRate(s Setup) (Contender, error) {
	return xTimeRate{rate.NewLimiter(rate.Every(s.Every), int(s.Burst))}, nil
}

func (x xTimeRate) Take(context.Context, string) (bool, error) { return x.l.Allow(), nil }

// clock limits nothing: it reads the monotonic clock, as every limiter in memory has to.
type clock struct{ start time.Time }

func openClock(Setup) (Contender, error) { return clock{time.Now()}, nil }

func (c clock) Take(context.Context, string) (bool, error) { return time.Since(c.start) >= 0, nil }
