// Package waitline holds callers that wait, in order.
package waitline

// List is a doubly linked list whose links lie in its elements: an element leaves in
// constant time and without an allocation, which matters because it leaves under a lock.
// The zero List is empty. P is the pointer type *T, which embeds [Links].
type List[T any, P linked[T]] struct{ Head, Tail *T }

// Links are the neighbours of an element of a [List]. An element embeds them.
type Links[T any] struct{ Next, Prev *T }

func (l *Links[T]) links() *Links[T] { return l }

type linked[T any] interface {
	*T
	links() *Links[T]
}

// Push adds w at the tail.
func (c *List[T, P]) Push(w *T) {
	if P(w).links().Prev = c.Tail; c.Tail == nil {
		c.Head = w
	} else {
		P(c.Tail).links().Next = w
	}
	c.Tail = w
}

// Remove takes w out of the list.
func (c *List[T, P]) Remove(w *T) {
	l := P(w).links()
	if l.Prev == nil {
		c.Head = l.Next
	} else {
		P(l.Prev).links().Next = l.Next
	}
	if l.Next == nil {
		c.Tail = l.Prev
	} else {
		P(l.Next).links().Prev = l.Prev
	}
	*l = Links[T]{}
}
