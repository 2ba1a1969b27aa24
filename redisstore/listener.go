package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// listener notifies watchers of what is published on their channels. It has one connection for
// all channels, and one goroutine, both only while there are watchers. The zero listener is ready.
type listener struct {
	mu       sync.Mutex
	watchers map[string][]chan<- struct{} // by channel
	changed  map[string]bool              // channels whose first watcher came or last one left
	nudge    chan struct{}                // wakes the goroutine for changed; nil if there is none
}

// watch sends to wake, without blocking, when something was or may have been published on
// channel, until stop is called.
func (l *listener) watch(
	client redis.UniversalClient, channel string, wake chan<- struct{},
) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nudge == nil {
		l.nudge = make(chan struct{}, 1)
		l.watchers = make(map[string][]chan<- struct{})
		l.changed = make(map[string]bool)
		go l.listen(client, l.nudge)
	}
	l.watchers[channel] = append(l.watchers[channel], wake)
	l.change(channel)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		w := l.watchers[channel]
		i := slices.Index(w, wake)
		if w = slices.Delete(w, i, i+1); len(w) > 0 {
			l.watchers[channel] = w
			return
		}
		delete(l.watchers, channel)
		l.change(channel)
	})
}

// change makes the goroutine subscribe to channel or unsubscribe from it.
func (l *listener) change(channel string) {
	l.changed[channel] = true
	send(l.nudge)
}

func (l *listener) wakeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel := range l.watchers {
		l.wake(channel)
	}
}

func (l *listener) wake(channel string) {
	for _, wake := range l.watchers[channel] {
		send(wake)
	}
}

// listen is the goroutine.
func (l *listener) listen(client redis.UniversalClient, nudge <-chan struct{}) {
	var pubsub *redis.PubSub
	var messages <-chan any
	for {
		select {
		case <-nudge:
			come, gone, watched := l.changes()
			switch {
			case !watched:
				if pubsub != nil {
					_ = pubsub.Close()
				}
				return
			case pubsub == nil:
				pubsub = client.Subscribe(context.Background(), come...)
				messages = pubsub.ChannelWithSubscriptions()
			case len(come) > 0:
				// An error needs no handling: the client subscribes again when it reconnects.
				_ = pubsub.Subscribe(context.Background(), come...)
			}
			if len(gone) > 0 {
				_ = pubsub.Unsubscribe(context.Background(), gone...)
			}
		case m := <-messages:
			l.receive(m)
		}
	}
}

// changes returns the channels to subscribe to and to unsubscribe from, and whether there are
// watchers. Without watchers the goroutine must end.
func (l *listener) changes() (come, gone []string, watched bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel := range l.changed {
		if l.watchers[channel] != nil {
			come = append(come, channel)
		} else {
			gone = append(gone, channel)
		}
	}
	clear(l.changed)
	if len(l.watchers) == 0 {
		l.watchers, l.changed, l.nudge = nil, nil, nil
		return nil, nil, false
	}
	return come, gone, true
}

// receive notifies the watchers of a message. The confirmation of a subscription counts as one,
// because what was published before it has been missed.
func (l *listener) receive(m any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" {
			l.wake(m.Channel)
		}
	case *redis.Message:
		l.wake(m.Channel)
	}
}

func send(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
