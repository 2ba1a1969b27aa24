package replay

import "slices"

// Narrowed returns a copy of d with at most the given numbers of keys for each limit and of bars.
// Counts stay exact. At least one bar stays.
func (d *Detail) Narrowed(keys, bars int) *Detail {
	c := d.clone()
	for i := range c.Keys {
		c.Keys[i] = c.Keys[i][:min(keys, len(c.Keys[i]))]
	}
	for c.Timeline != nil && len(c.Timeline.Requests) > max(bars, 1) {
		c.widen()
	}
	return c
}

func (d *Detail) clone() *Detail {
	c := *d
	c.Keys, c.KeyTimelines = slices.Clone(d.Keys), slices.Clone(d.KeyTimelines)
	for i := range c.Keys {
		c.Keys[i], c.KeyTimelines[i] = slices.Clone(d.Keys[i]), slices.Clone(d.KeyTimelines[i])
	}
	c.Paths, c.Methods = slices.Clone(d.Paths), slices.Clone(d.Methods)
	c.Statuses = slices.Clone(d.Statuses)
	return &c
}

// widen joins bars to the next width.
func (d *Detail) widen() {
	t := d.Timeline
	series := slices.Insert(slices.Clone(t.Denied), 0, t.Requests)
	b := &bars{t.WidthS, t.From.Unix() / t.WidthS, series}
	first := b.first
	b.widen(nextWidth(barWidths, b.width))
	to := func(bar int64) int64 { return (first+bar)*t.WidthS/b.width - b.first }
	for _, lines := range d.KeyTimelines {
		for i := range lines {
			lines[i].Requests = joinedBars(lines[i].Requests, to)
			lines[i].Denied = joinedBars(lines[i].Denied, to)
		}
	}
	d.Timeline = b.timeline()
}

// joinedBars is joined for bars that leave out those without any.
func joinedBars(narrow []BarCount, to func(bar int64) int64) []BarCount {
	wide := []BarCount{}
	for _, b := range narrow {
		wide = addBar(wide, to(b[0]), b[1])
	}
	return wide
}
