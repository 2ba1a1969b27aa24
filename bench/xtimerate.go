package main

import (
	"sync"

	"golang.org/x/time/rate"
)

// xTimeRate is one golang.org/x/time/rate limiter, which has no keys.
type xTimeRate struct{ l *rate.Limiter }

func openXTimeRate(s Setup) (Contender, error) {
	return xTimeRate{newXTimeLimiter(s.Terms)}, nil
}

func newXTimeLimiter(t Terms) *rate.Limiter {
	return rate.NewLimiter(rate.Every(t.Every), int(t.Burst))
}

func (x xTimeRate) Take(string) (bool, error) { return x.l.Allow(), nil }

// xTimeRateMap is one golang.org/x/time/rate limiter for each key in a map
// under a read-write mutex: what a service writes that has only that package.
type xTimeRateMap struct {
	terms Terms
	mu    sync.RWMutex
	m     map[string]*rate.Limiter
}

func openXTimeRateMap(s Setup) (Contender, error) {
	return &xTimeRateMap{terms: s.Terms, m: make(map[string]*rate.Limiter, s.Keys)}, nil
}

func (x *xTimeRateMap) Take(key string) (bool, error) {
	x.mu.RLock()
	l := x.m[key]
	x.mu.RUnlock()
	if l == nil {
		l = x.add(key)
	}
	return l.Allow(), nil
}

func (x *xTimeRateMap) add(key string) *rate.Limiter {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.m[key]
	if l == nil {
		l = newXTimeLimiter(x.terms)
		x.m[key] = l
	}
	return l
}
