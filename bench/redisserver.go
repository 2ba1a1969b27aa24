package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/internal/redistest"
)

// redisServer is a Redis of our own, with a client beside those of the contenders.
type redisServer struct {
	*redistest.Server

	admin *redis.Client
}

// withRedis calls measure with a Redis started for it.
func withRedis(ctx context.Context, measure func(redisServer) error) error {
	s, err := redistest.Run(ctx)
	if err != nil {
		return err
	}
	defer s.Stop()
	admin := newGoRedis(s.Addr)
	defer admin.Close()
	return measure(redisServer{s, admin})
}

// cpuMicros is the processor time, user and system, that the server has used.
func (s redisServer) cpuMicros(ctx context.Context) (float64, error) {
	user, err := s.info(ctx, "cpu", "used_cpu_user:")
	if err != nil {
		return 0, err
	}
	system, err := s.info(ctx, "cpu", "used_cpu_sys:")
	return (user + system) * 1e6, err
}

// info reads the number that follows label in a section of INFO.
func (s redisServer) info(ctx context.Context, section, label string) (float64, error) {
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(text, label)
	if !found {
		return 0, fmt.Errorf("INFO %s has no %s", section, label)
	}
	return strconv.ParseFloat(rest[:strings.IndexAny(rest, ",\r")], 64)
}

// checkSize returns an error unless there are want keys, or up to extra more.
func (s redisServer) checkSize(ctx context.Context, want, extra int) error {
	got, err := s.admin.DBSize(ctx).Result()
	if err == nil && (got < int64(want) || got > int64(want+extra)) {
		err = fmt.Errorf("there are %d keys in Redis; want %d", got, want)
	}
	return err
}

// usage is the sum of MEMORY USAGE of all keys.
func (s redisServer) usage(ctx context.Context) (total int64, err error) {
	keys := s.admin.Scan(ctx, 0, "", 1000).Iterator()
	for keys.Next(ctx) {
		n, err := s.admin.MemoryUsage(ctx, keys.Val(), 0).Result()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, keys.Err()
}
