package main

import (
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func headgateMiddleware(s Setup, next http.Handler) (http.Handler, error) {
	l, err := headgate.NewLimiter(headgate.NewMemory(s.Keys+1), s.bucket())
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(l, httplimit.Options{})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}
