package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

var batchingGoRedis = redis.NewScript(batchingScript)

// scriptWay runs the script through go-redis: through its client, or through the part
// of it that makes pipelines of what several callers ask.
type scriptWay struct {
	client *redis.Client
	by     redis.Scripter
	args   []any
}

func newScriptWay(s Setup) scriptWay {
	client := newGoRedis(s.Addr)
	args := batchingArgs(s.Terms)
	return scriptWay{client, client, []any{args[0], args[1], args[2]}}
}

func openScriptCalls(s Setup) (Contender, error) { return single{newScriptWay(s)}, nil }

func openScriptAutoPipeline(s Setup) (Contender, error) {
	w := newScriptWay(s)
	by, err := w.client.AutoPipeline()
	w.by = by
	return single{w}, err
}

// scriptBatches asks one call of the script for all who share a batch.
func scriptBatches(lanes int) func(Setup) (Contender, error) {
	return func(s Setup) (Contender, error) { return newCoalescer(newScriptWay(s), lanes, batchMost), nil }
}

func (w scriptWay) decide(keys []string) ([]bool, error) {
	text, err := batchingGoRedis.Run(context.Background(), w.by, keys, w.args...).Text()
	return scriptAnswers(text, len(keys), err)
}

func (w scriptWay) Close() error { return w.client.Close() }

// scriptAnswers reads the 1s and 0s of the script.
func scriptAnswers(text string, keys int, err error) ([]bool, error) {
	if err == nil && len(text) != keys {
		err = fmt.Errorf("the script answered %q to %d questions", text, keys)
	}
	if err != nil {
		return nil, err
	}
	granted := make([]bool, keys)
	for i := range granted {
		granted[i] = text[i] == '1'
	}
	return granted, nil
}

var batchingRueidis = rueidis.NewLuaScript(batchingScript)

// rueidisWay runs the script through rueidis, which makes pipelines by itself.
type rueidisWay struct {
	client rueidis.Client
	args   []string
}

func openScriptRueidis(s Setup) (Contender, error) {
	client, err := newRueidis(s.Addr)
	if err != nil {
		return nil, err
	}
	return single{rueidisWay{client, batchingArgs(s.Terms)}}, nil
}

func (w rueidisWay) decide(keys []string) ([]bool, error) {
	text, err := batchingRueidis.Exec(context.Background(), w.client, keys, w.args).ToString()
	return scriptAnswers(text, len(keys), err)
}

func (w rueidisWay) Close() error {
	w.client.Close()
	return nil
}
