package main

import (
	"context"

	"github.com/headgate/headgate"
)

// Entries of this project that are not a plain limiter on a plain store.
const (
	memoryTakeName = "headgate, Memory.Take"
	denyCacheName  = "headgate+denycache"
	leaseName      = "headgate+lease"
)

// headgateMemory is this project's memory store: asked by a limiter, as users
// do, and asked directly.
func headgateMemory() []Entry {
	return []Entry{
		{Name: headgateName, Open: openHeadgateMemory},
		{Name: memoryTakeName, Open: openMemoryTake},
	}
}

// bucket is the limit the terms describe.
func (t Terms) bucket() headgate.Limit { return headgate.Per(1, t.Every).Burst(t.Burst) }

// headgateLimiter is a limiter of this project on one of its stores.
type headgateLimiter struct{ l *headgate.Limiter }

func openHeadgateMemory(s Setup) (Contender, error) {
	l, err := headgate.NewLimiter(headgate.NewMemory(s.Keys), s.bucket())
	return headgateLimiter{l}, err
}

func (h headgateLimiter) Take(key string) (bool, error) {
	d, err := h.l.Allow(context.Background(), key)
	return d.Allowed(), err
}

// memoryTake asks the memory store of this project without a limiter.
type memoryTake struct {
	m     *headgate.Memory
	limit headgate.Limit
}

func openMemoryTake(s Setup) (Contender, error) {
	return memoryTake{headgate.NewMemory(s.Keys), s.bucket()}, nil
}

func (m memoryTake) Take(key string) (bool, error) {
	d, err := m.m.Take(context.Background(), headgate.Request{Key: key, Limit: m.limit, Cost: 1})
	return d.Allowed(), err
}
