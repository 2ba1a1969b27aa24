package main

import (
	"errors"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
)

// heldWay keeps questions until they are let go.
type heldWay struct {
	mu      sync.Mutex
	asked   [][]string
	release chan error // one value for each question
}

func (h *heldWay) decide(keys []string) ([]bool, error) {
	h.mu.Lock()
	h.asked = append(h.asked, keys)
	h.mu.Unlock()
	if err := <-h.release; err != nil {
		return nil, err
	}
	granted := make([]bool, len(keys))
	for i, key := range keys {
		n, err := strconv.Atoi(key)
		if err != nil {
			return nil, err
		}
		granted[i] = n%2 == 0
	}
	return granted, nil
}

func (h *heldWay) Close() error { return nil }

// Who comes while all lanes are taken goes with the next batch, in order of arrival and
// no more than fit; each gets the answer to its own question.
func TestCoalescerSharesBatches(t *testing.T) {
	tests := []struct {
		lanes, most, callers int
		want                 [][]string
	}{
		{1, 10, 1, [][]string{{"0"}}},
		{1, 10, 5, [][]string{{"0"}, {"1", "2", "3", "4"}}},
		{1, 2, 6, [][]string{{"0"}, {"1", "2"}, {"3", "4"}, {"5"}}},
		{2, 10, 6, [][]string{{"0"}, {"1"}, {"2", "3", "4", "5"}}},
		{2, 2, 6, [][]string{{"0"}, {"1"}, {"2", "3"}, {"4", "5"}}},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			way := &heldWay{release: make(chan error)}
			c := newCoalescer(way, tt.lanes, tt.most)
			for i := range tt.callers {
				go func() {
					got, err := c.Take(strconv.Itoa(i))
					if err != nil || got != (i%2 == 0) {
						t.Errorf("caller %d: %v, %v", i, got, err)
					}
				}()
				synctest.Wait()
			}
			if got, want := len(way.asked), min(tt.lanes, tt.callers); got != want {
				t.Errorf("%d batches in flight, want %d", got, want)
			}
			for range tt.want {
				way.release <- nil
				synctest.Wait()
			}
			if !reflect.DeepEqual(way.asked, tt.want) {
				t.Errorf("lanes %d, most %d: batches %v, want %v", tt.lanes, tt.most, way.asked, tt.want)
			}
			if c.flying != 0 {
				t.Errorf("%d lanes are taken in the end", c.flying)
			}
		})
	}
}

// An error is that of all in the batch, and of no others.
func TestCoalescerTellsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &heldWay{release: make(chan error)}
		c := newCoalescer(way, 1, 2)
		lost := errors.New("lost")
		wants := []error{nil, lost, lost, nil}
		for i, want := range wants {
			go func() {
				if _, err := c.Take(strconv.Itoa(i)); !errors.Is(err, want) {
					t.Errorf("caller %d: error %v, want %v", i, err, want)
				}
			}()
			synctest.Wait()
		}
		for _, err := range []error{nil, lost, nil} {
			way.release <- err
			synctest.Wait()
		}
	})
}
