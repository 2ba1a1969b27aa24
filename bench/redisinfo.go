package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// cpuSeconds is the processor time, user and system, the server has used.
func (s *redisServer) cpuSeconds(ctx context.Context) (float64, error) {
	user, err := s.infoNumber(ctx, "cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := s.infoNumber(ctx, "cpu", "used_cpu_sys")
	return user + system, err
}

// infoNumber reads one number from a section of INFO.
func (s *redisServer) infoNumber(ctx context.Context, section, field string) (float64, error) {
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strconv.ParseFloat(strings.TrimSpace(v), 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, field)
}

// checkSize compares the number of keys in the database with want, and up to extra more.
func (s *redisServer) checkSize(ctx context.Context, want, extra int) error {
	got, err := s.admin.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	if got < int64(want) || got > int64(want+extra) {
		return fmt.Errorf("there are %d keys in Redis where %d were touched", got, want)
	}
	return nil
}

// usage is the sum of MEMORY USAGE over all keys of the database.
func (s *redisServer) usage(ctx context.Context) (total int64, err error) {
	var cursor uint64
	for {
		keys, next, err := s.admin.Scan(ctx, cursor, "", 1000).Result()
		if err != nil {
			return 0, err
		}
		sizes := make([]*redis.IntCmd, len(keys))
		pipe := s.admin.Pipeline()
		for i, k := range keys {
			sizes[i] = pipe.MemoryUsage(ctx, k, 0)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, err
		}
		for _, size := range sizes {
			total += size.Val()
		}
		if cursor = next; cursor == 0 {
			return total, nil
		}
	}
}
