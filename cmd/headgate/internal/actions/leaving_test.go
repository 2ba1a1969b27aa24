package actions

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
)

// leaver is a store whose client disconnects while a key is reset.
type leaver struct {
	headgate.Store

	leave context.CancelFunc
}

func (l *leaver) Reset(ctx context.Context, key string, limit headgate.Limit) error {
	l.leave()
	return l.Store.Reset(ctx, key, limit)
}

// TestClientLeaves: an action that has begun is carried out, listed and announced, also if its client
// disconnects meanwhile.
func TestClientLeaves(t *testing.T) {
	server := redistest.Start(t)
	a, b := newInstance(t, open(t, server)), newInstance(t, open(t, server))
	var announced atomic.Bool
	b.table.Follow(b.engine.Switch, func(overrides.Reset) { announced.Store(true) })
	a.use("login", ip, 5)
	ctx, leave := context.WithCancel(t.Context())
	a.o.Store = &leaver{a.store, leave}
	done, err := a.Do(ctx, Order{Kind: Reset, Rule: "login", Key: ip, By: "Ann"})
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the other instance receives the reset", announced.Load)
	list, err := b.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != done.ID {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// TestNotAnnounced: a reset that other instances may not know is an error that says so.
func TestNotAnnounced(t *testing.T) {
	server := redistest.Start(t)
	a := newInstance(t, open(t, server))
	a.o.Store = &leaver{headgate.NewMemory(), server.Stop}
	_, err := a.Do(t.Context(), Order{Kind: Reset, Rule: "login", Key: ip, By: "Ann"})
	if !errors.Is(err, ErrNotAnnounced) {
		t.Errorf("Do returned %v", err)
	}
}
