package main

import (
	"bytes"
	"context"
	_ "embed" // the prototype
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/redisstore"
)

//go:embed testdata/prototype.lua
var prototype string

// batchSizes are the batches whose script time is measured.
var batchSizes = []int{1, 4, 64}

// A request in a batch is '<I1I3I3' (see redisstore/batch.lua): what it has besides its key and
// its limit, and their indices. An answer is '<I7i7I7', of which the second number is 0 if granted.
const answerWidth = 21

func request(key int) string {
	return string([]byte{0, byte(key), byte(key >> 8), byte(key >> 16), 1, 0, 0})
}

// scriptCall is a script that decides batches of requests under one limit, and one that decides a
// lone request by one argument, if there is such a script.
type scriptCall struct {
	name, sha, loneSHA string
	limits, alone      any
}

// spy keeps the arguments of the last EVALSHA of a client.
type spy struct{ args []any }

func (s *spy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.args = s.args[:0]
			for _, arg := range cmd.Args() { // some are pointers to bytes that are used again
				if v := reflect.Indirect(reflect.ValueOf(arg)); v.Kind() == reflect.Slice {
					arg = bytes.Clone(v.Bytes())
				}
				s.args = append(s.args, arg)
			}
		}
		return next(ctx, cmd)
	}
}

// scriptCalls returns Headgate's script, as seen in a decision of its store, and the prototype.
func (s redisServer) scriptCalls(ctx context.Context) ([]scriptCall, error) {
	client, seen := newGoRedis(s.Addr), &spy{}
	defer client.Close()
	client.AddHook(seen)
	store, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	limit := headgate.PerSecond(1_000_000) // refills between takes: states are as in a steady load
	r := headgate.Request{Key: "k", Limit: limit, Cost: 1}
	if _, err := store.Take(ctx, r); err != nil {
		return nil, err
	}
	alone := slices.Clone(seen.args) // evalsha sha 1 key request
	r.Force = true                   // so that several requests are a batch, not a group
	rs := []headgate.Request{r, {Key: "l", Limit: limit, Cost: 1, Force: true}}
	if err := store.TakeAll(ctx, rs, make([]headgate.Decision, len(rs))); err != nil {
		return nil, err
	}
	args := seen.args // evalsha, sha, 2, the two keys, limits, requests
	if len(alone) != 5 || len(args) != 7 {
		return nil, fmt.Errorf("decisions sent %q and %q; want one key and two", alone, args)
	}
	sha, err := s.admin.ScriptLoad(ctx, prototype).Result()
	return []scriptCall{
		{headgateName, fmt.Sprint(args[1]), fmt.Sprint(alone[1]), args[5], alone[4]},
		{prototypeName, sha, "", args[5], nil},
	}, err
}

// scriptRound measures the run time of both scripts in batches of each size.
func (s redisServer) scriptRound(ctx context.Context, n, decisions int, out *Results) error {
	calls, err := s.scriptCalls(ctx)
	if err != nil {
		return err
	}
	for _, size := range batchSizes {
		for i := range calls {
			c := calls[(i+n)%len(calls)]
			micros, err := s.scriptTime(ctx, c, size, decisions)
			if err != nil {
				return err
			}
			out.Add(Cell{scriptPart, scriptName, size, c.name}, Sample{Script: micros})
		}
	}
	return nil
}

// scriptTime is the run time of a script for a decision, in microseconds, by Redis' own count.
func (s redisServer) scriptTime(
	ctx context.Context, c scriptCall, size, decisions int,
) (float64, error) {
	if err := s.admin.FlushAll(ctx).Err(); err != nil {
		return 0, err
	}
	if err := s.runBatches(ctx, c, size, scriptKeys); err != nil { // creates the keys
		return 0, err
	}
	if err := s.admin.ConfigResetStat(ctx).Err(); err != nil {
		return 0, err
	}
	if err := s.runBatches(ctx, c, size, decisions); err != nil {
		return 0, err
	}
	label := fmt.Sprintf("cmdstat_evalsha:calls=%d,usec=", decisions/size)
	micros, err := s.info(ctx, "commandstats", label)
	return micros / float64(decisions), err
}

// scriptName is the workload, scriptKeys how many keys the batches go through.
const (
	scriptName = "1k keys"
	scriptKeys = 1024
)

// runBatches makes decisions in batches of size, and checks that all are granted.
func (s redisServer) runBatches(ctx context.Context, c scriptCall, size, decisions int) error {
	var requests strings.Builder
	for i := range size {
		requests.WriteString(request(i + 1))
	}
	pipe := s.admin.Pipeline()
	answers := make([]*redis.Cmd, decisions/size)
	for i := range answers {
		args := []any{"evalsha", c.sha, size}
		for j := range size {
			args = append(args, keyOf((i*size+j)%scriptKeys))
		}
		if size == 1 && c.alone != nil {
			args[1] = c.loneSHA
			args = append(args, c.alone)
		} else {
			args = append(args, c.limits, requests.String())
		}
		answers[i] = pipe.Do(ctx, args...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for _, answer := range answers {
		text, _ := answer.Text()
		if err := checkGranted(text, size); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// checkGranted returns an error unless text is answers to size requests, all granted.
func checkGranted(text string, size int) error {
	if len(text) != size*answerWidth {
		return fmt.Errorf("the script answered %d bytes; want %d", len(text), size*answerWidth)
	}
	for at := 0; at < len(text); at += answerWidth {
		if text[at+7:at+14] != "\x00\x00\x00\x00\x00\x00\x00" {
			return errors.New("the script denied a request; want all granted")
		}
	}
	return nil
}
