package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// listener hears what is published to the channels that somebody watches, by one
// connection for all of them. Its goroutine, the only one that speaks to the server,
// goes when nobody watches any more. The zero listener is ready.
type listener struct {
	mu       sync.Mutex
	watchers map[string][]chan<- struct{} // by channel
	pending  map[string]bool              // channels of which the first watcher came, or the last went
	heard    map[string]bool              // channels that the server has confirmed
	nudge    chan struct{}                // tells the goroutine of pending; nil if there is none
}

// watch sends to wake, without blocking, whenever something is, or may have been,
// published to channel, until stop is called.
func (l *listener) watch(client redis.UniversalClient, channel string, wake chan<- struct{}) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers == nil {
		l.watchers, l.pending, l.heard = make(map[string][]chan<- struct{}), make(map[string]bool), make(map[string]bool)
	}
	if l.nudge == nil {
		l.nudge = make(chan struct{}, 1)
		go l.listen(client, l.nudge)
	}
	l.watchers[channel] = append(l.watchers[channel], wake)
	l.look(channel)
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
		l.look(channel)
	})
}

// look lets the goroutine look at channel.
func (l *listener) look(channel string) {
	l.pending[channel] = true
	send(l.nudge)
}

// released wakes those who watch channel, if the server cannot.
func (l *listener) released(channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.heard[channel] {
		l.wake(channel)
	}
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
				_ = pubsub.Subscribe(context.Background(), come...) // if it fails, it is repeated by the client
			}
			if len(gone) > 0 {
				_ = pubsub.Unsubscribe(context.Background(), gone...)
			}
		case m := <-messages:
			l.hear(m)
		}
	}
}

// changes gives the channels to subscribe to and to leave, and whether anybody is left to
// watch: if not, the goroutine must go.
func (l *listener) changes() (come, gone []string, watched bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel := range l.pending {
		if l.watchers[channel] != nil {
			come = append(come, channel)
		} else {
			gone = append(gone, channel)
			delete(l.heard, channel)
		}
	}
	clear(l.pending)
	if len(l.watchers) == 0 {
		l.watchers, l.pending, l.heard, l.nudge = nil, nil, nil, nil
		return nil, nil, false
	}
	return come, gone, true
}

// hear wakes those whom a message concerns. The confirmation of a subscription is one:
// what was published before it has been missed.
func (l *listener) hear(m any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" && l.watchers[m.Channel] != nil {
			l.heard[m.Channel] = true
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
