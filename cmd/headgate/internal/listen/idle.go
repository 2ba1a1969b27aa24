package listen

import (
	"container/heap"
	"time"
)

// byIdle is a heap of connections by the time from which on they are idle. A connection that is
// used changes its place only when idlest comes across it: reading and writing take no lock.
type byIdle []*conn

// idlest returns the connection that is idle longest, or nil if all are in use.
func (h *byIdle) idlest(now time.Time) *conn {
	for len(*h) > 0 {
		c := (*h)[0]
		from := c.idleAt(now)
		switch {
		case from > c.idleFrom:
			c.idleFrom = from
			heap.Fix(h, 0)
		case from > now.UnixNano():
			return nil
		default:
			return c
		}
	}
	return nil
}

// Len is of heap.Interface, as the methods below.
func (h *byIdle) Len() int { return len(*h) }

// Less compares two connections.
func (h *byIdle) Less(i, j int) bool { return (*h)[i].idleFrom < (*h)[j].idleFrom }

// Swap swaps two connections.
func (h *byIdle) Swap(i, j int) {
	list := *h
	list[i], list[j] = list[j], list[i]
	list[i].place, list[j].place = i, j
}

// Push appends a connection.
func (h *byIdle) Push(c any) {
	one := c.(*conn) //nolint:forcetypeassert // a heap of connections
	one.place = len(*h)
	*h = append(*h, one)
}

// Pop removes the last connection.
func (h *byIdle) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	c.place = -1
	return c
}
