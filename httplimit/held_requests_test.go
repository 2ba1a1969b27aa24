package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// A client begins right logins and holds 30 of them open over several windows. Then it lets them
// end one after the other, and guesses after each: at most 5 guesses are let through. A bucket does
// not know that its tokens have been refilled, so there the 30 come on top.
func TestHeldRequestsStoreNoGuesses(t *testing.T) {
	for limit, most := range map[headgate.Limit]int{
		headgate.FixedWindow(5, time.Minute):        5,
		headgate.SlidingWindow(5, time.Minute):      5,
		headgate.SlidingLog(5, time.Minute):         5,
		headgate.Daily(5):                           5,
		headgate.PerMinute(5):                       35,
		headgate.SteppedTokenBucket(5, time.Minute): 35,
	} {
		t.Run(limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				guesses := guessAfterHeld(t, limit)
				if guesses > most {
					t.Errorf("%d guesses at once; want at most %d", guesses, most)
				}
				if guesses < 5 {
					t.Errorf("%d guesses: this shows nothing", guesses)
				}
			})
		})
	}
}

func guessAfterHeld(t *testing.T, limit headgate.Limit) (guesses int) {
	t.Helper()
	l, err := headgate.NewLimiter(headgate.NewMemory(), limit)
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	h := counted(t, l, httplimit.Options{Count: func(status int) bool {
		return status == http.StatusUnauthorized
	}}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/right" {
			<-held
			w.WriteHeader(http.StatusOK)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	ask := func(path string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		r.Header.Set("Key", "ip:192.0.2.1")
		h.ServeHTTP(w, r)
		return w.Code
	}
	guess := func() {
		for ask("/wrong") == http.StatusUnauthorized {
			guesses++
		}
	}
	window := 2 * time.Minute // so that all windows are empty
	if limit.Algorithm() == headgate.AlgorithmCalendarWindow {
		window = 24 * time.Hour
	}
	var all sync.WaitGroup
	for range 6 {
		for range 5 {
			all.Go(func() { ask("/right") })
		}
		time.Sleep(window)
	}
	guess()
	for range 30 {
		held <- struct{}{}
		synctest.Wait()
		guess()
	}
	all.Wait()
	return guesses
}
