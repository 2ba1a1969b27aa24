package headgate

// chain holds those who wait, in order. Its links lie in them, so that whoever leaves does so in
// constant time, which matters because it is done under a lock.
type chain[T any, P linked[T]] struct{ head, tail *T }

// links are those of one in a chain. Who waits in one embeds them.
type links[T any] struct{ next, prev *T }

func (l *links[T]) own() *links[T] { return l }

// linked is a pointer to what embeds links.
type linked[T any] interface {
	*T
	own() *links[T]
}

// push puts w at the end.
func (c *chain[T, P]) push(w *T) { c.insert(w, c.tail) }

// insert puts w behind before, or at the head if that is nil.
func (c *chain[T, P]) insert(w, before *T) {
	l := P(w).own()
	if l.prev = before; before == nil {
		l.next, c.head = c.head, w
	} else {
		l.next, P(before).own().next = P(before).own().next, w
	}
	if l.next == nil {
		c.tail = w
	} else {
		P(l.next).own().prev = w
	}
}

// remove takes w out.
func (c *chain[T, P]) remove(w *T) {
	l := P(w).own()
	if l.prev == nil {
		c.head = l.next
	} else {
		P(l.prev).own().next = l.next
	}
	if l.next == nil {
		c.tail = l.prev
	} else {
		P(l.next).own().prev = l.prev
	}
	*l = links[T]{}
}
