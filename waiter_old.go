package headgate

// Most is Burst, for the Waiter of the root, until that moves to package gate.
func (w *KeyWaiter) Most() int64 { return w.Burst() }
