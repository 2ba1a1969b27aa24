package main

import (
	"net/http"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/limiter"
)

// tollboothMiddleware is the bucket of didip/tollbooth, kept for longer than a run.
func tollboothMiddleware(s Setup, next http.Handler) (http.Handler, error) {
	l := tollbooth.NewLimiter(1/s.Every.Seconds(), &limiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
	l.SetBurst(int(s.Burst)).SetIPLookups([]string{"RemoteAddr"}).SetIgnoreURL(true)
	return tollbooth.LimitHandler(l, next), nil
}
