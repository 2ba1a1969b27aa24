package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/internal/redistest"
)

// A redisServer is a Redis process of our own, with a client beside those of
// the contenders to look after it.
type redisServer struct {
	*redistest.Server

	admin *redis.Client
}

// startRedis starts the server and ends it with Stop.
func startRedis(ctx context.Context) (*redisServer, error) {
	s, err := redistest.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &redisServer{s, newGoRedis(s.Addr)}, nil
}

// Stop ends the server and closes the client.
func (s *redisServer) Stop() {
	_ = s.admin.Close()
	s.Server.Stop()
}
