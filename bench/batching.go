package main

import (
	_ "embed" // the script
	"strconv"
	"time"
)

// batchingStore is the Store of the cells of an experiment: how callers of one process
// can share their way to Redis. Its contenders are no limiters for use; they show what
// a way costs for the same simple decision.
const batchingStore = "batching"

// batchMost is how many decisions share a batch at most.
const batchMost = 200

// batchingField is every way, beside the contender that ratios are taken against and
// this project's store.
func batchingField() []Entry {
	return append(headgateRedis(), []Entry{
		{Name: redisRateName, Open: openRedisRate},
		{Name: "script, a call each", Open: openScriptCalls},
		{Name: "script, go-redis AutoPipeline", Open: openScriptAutoPipeline},
		{Name: "script, rueidis", Open: openScriptRueidis},
		{Name: "script, batches, 1 in flight", Open: scriptBatches(1)},
		{Name: "script, batches, 2 in flight", Open: scriptBatches(2)},
		{Name: "INCR, a pipeline each", Open: openCounterCalls},
		{Name: "INCR, batches, 1 in flight", Open: counterBatches(1)},
		{Name: "INCR, batches, 2 in flight", Open: counterBatches(2)},
	}...)
}

// batchingScript decides about any number of keys under one limit.
//
//go:embed batching.lua
var batchingScript string

// batchingArgs are the script's, in strings.
func batchingArgs(t Terms) []string {
	text := func(d, unit time.Duration) string { return strconv.FormatInt(int64(d/unit), 10) }
	return []string{
		text(t.Every, time.Microsecond), text(t.Period(), time.Microsecond), text(t.Period(), time.Millisecond),
	}
}

// A way decides about several keys by one question: answer i is about key i.
type way interface {
	decide(keys []string) ([]bool, error)
	Close() error
}

// A single asks a way about one key at a time.
type single struct{ way }

func (s single) Take(key string) (bool, error) {
	granted, err := s.decide([]string{key})
	if err != nil {
		return false, err
	}
	return granted[0], nil
}
