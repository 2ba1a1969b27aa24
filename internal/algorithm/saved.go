package algorithm

import (
	"cmp"
	"slices"
)

// Numbers returns k, without Scaled, for [Rule.Account].
func (k Account) Numbers() []int64 {
	numbers := []int64{0, k.At, k.Used, k.Previous, k.Step}
	if k.Booked {
		numbers[0] |= 1
	}
	if k.Late {
		numbers[0] |= 2
	}
	for _, e := range k.Log {
		numbers = append(numbers, int64(e))
	}
	return numbers
}

// Account returns what [Account.Numbers] has written. It reports false if that is no account of l.
func (l *Rule) Account(numbers []int64) (k Account, ok bool) {
	if len(numbers) < 5 || len(numbers) > 5+maxBooked || slices.Min(numbers[:5]) < 0 {
		return k, false
	}
	k.Booked, k.Late = numbers[0]&1 != 0, numbers[0]&2 != 0
	k.At, k.Used, k.Previous, k.Step = numbers[1], numbers[2], numbers[3], numbers[4]
	for _, n := range numbers[5:] {
		k.Log = append(k.Log, Entry(n))
	}
	byTime := func(a, b Entry) int { return cmp.Compare(a.at(), b.at()) }
	since := k.At - k.Step
	return k, k.At <= MaxExact && k.Used <= l.maxUsed && k.Previous <= maxPair &&
		(l.Algorithm != Stepped || since >= 0 && since < l.period) &&
		(l.Algorithm == SlidingLog && slices.IsSortedFunc(k.Log, byTime) || len(k.Log) == 0)
}
