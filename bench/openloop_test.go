package main

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestArrivals(t *testing.T) {
	due := arrivals(10_000, time.Second)
	if len(due) != 10_000 || !slices.IsSorted(due) || due[0] < 0 || due[9999] >= time.Second {
		t.Errorf("%d arrivals from %v to %v", len(due), due[0], due[len(due)-1])
	}
	if half, _ := slices.BinarySearch(due, time.Second/2); half < 4700 || half > 5300 {
		t.Errorf("%d of 10000 arrivals in the first half", half)
	}
	if !slices.Equal(due, arrivals(10_000, time.Second)) {
		t.Error("arrivals differ from run to run")
	}
}

// takeFunc is a contender that is a function.
type takeFunc func() (bool, error)

func (f takeFunc) Take(string) (bool, error) { return f() }

// Who finds too many in flight is not taken; the others are, however long it takes.
func TestOpenLoopBoundsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		c := takeFunc(func() (bool, error) { <-answer; return true, nil })
		go func() {
			res, err := openLoop{c, shuffledKeys(3), make([]time.Duration, 20), 5}.run()
			if err != nil || res.Granted != 5 || res.Denied != 0 {
				t.Errorf("%d granted, %d denied, %v; want 5 granted", res.Granted, res.Denied, err)
			}
			if s := res.sample(); s[NotTaken] != 0.75 {
				t.Errorf("%v were not taken, want 0.75", s[NotTaken])
			}
		}()
		synctest.Wait()
		close(answer)
		synctest.Wait()
	})
}

// The clock of a decision begins when it is due, not when the harness gets round to it.
func TestOpenLoopCountsFromWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := takeFunc(func() (bool, error) { time.Sleep(time.Millisecond); return true, nil })
		res, err := openLoop{c, shuffledKeys(3), []time.Duration{-20 * time.Millisecond, -time.Millisecond, 0}, 5}.run()
		if err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{21 * time.Millisecond, 2 * time.Millisecond, time.Millisecond}; !slices.Equal(res.took, want) {
			t.Errorf("took %v, want %v", res.took, want)
		}
	})
}

func TestOpenLoopEndsAtAnError(t *testing.T) {
	lost := errors.New("lost")
	c := takeFunc(func() (bool, error) { return false, lost })
	if _, err := (openLoop{c, shuffledKeys(3), make([]time.Duration, 20), 5}).run(); !errors.Is(err, lost) {
		t.Errorf("error is %v", err)
	}
}

func TestPacedSample(t *testing.T) {
	res := pacedResult{elapsed: time.Second, took: make([]time.Duration, 10)}
	for i := range res.took {
		res.took[i] = time.Duration(i+1) * time.Millisecond
	}
	res.took[0], res.took[1] = notTaken, 12*time.Millisecond
	got := res.sample()
	for m, want := range map[Metric]float64{Rate: 9, P50: 7000, Longest: 12_000, Late: 0.2} {
		if got[m] != want {
			t.Errorf("%s is %v, want %v", m, got[m], want)
		}
	}
}
