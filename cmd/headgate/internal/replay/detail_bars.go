package replay

import "time"

// barWidths are the widths of the bars of a Detail in seconds. Weeks double after.
var barWidths = []int64{
	1, 2, 5, 10, 15, 30,
	60, 2 * 60, 5 * 60, 10 * 60, 15 * 60, 30 * 60,
	3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600,
	86400, 7 * 86400,
}

// countWidths are those in which bars are counted while the span is not known: each is a multiple
// of the one before. If a span is too long for the most bars of one of them, the width of the
// result is a multiple of the next.
var countWidths = []int64{
	1, 5, 15, 30,
	60, 5 * 60, 15 * 60, 30 * 60,
	3600, 3 * 3600, 6 * 3600, 12 * 3600,
	86400, 7 * 86400,
}

// countBars is the most bars while counting: the largest step of countWidths is 7.
const countBars = 7 * DetailBars

// nextWidth returns the first of widths above width that is a multiple of it, or twice width if
// there is none.
func nextWidth(widths []int64, width int64) int64 {
	for _, w := range widths {
		if w > width && w%width == 0 {
			return w
		}
	}
	return 2 * width
}

// bars counts requests over time in several series.
type bars struct {
	width  int64 // seconds
	first  int64 // number of the first bar, counted from the epoch
	series [][]int64
}

func newBars(series int) *bars {
	return &bars{width: countWidths[0], series: make([][]int64, series)}
}

// begin makes the bar of a time the last one. Times do not go back.
func (b *bars) begin(second int64) {
	if len(b.series[0]) == 0 {
		b.first = second / b.width
	}
	for second/b.width-b.first >= countBars {
		b.widen(nextWidth(countWidths, b.width))
	}
	for i, s := range b.series {
		if n := int(second/b.width-b.first) + 1 - len(s); n > 0 {
			b.series[i] = append(s, make([]int64, n)...)
		}
	}
}

// add counts one request of the last bar in a series.
func (b *bars) add(series int) { b.series[series][len(b.series[series])-1]++ }

// widen joins bars. next is a multiple of the width.
func (b *bars) widen(next int64) {
	first := b.first * b.width / next
	for i, s := range b.series {
		b.series[i] = joined(s, func(bar int64) int64 { return (b.first+bar)*b.width/next - first })
	}
	b.width, b.first = next, first
}

// joined adds up counts by their new bars.
func joined(counts []int64, to func(bar int64) int64) []int64 {
	wide := make([]int64, to(int64(len(counts)-1))+1)
	for i, n := range counts {
		wide[to(int64(i))] += n
	}
	return wide
}

// finish makes the bars as narrow as they can be. Many limits have fewer bars, since each has
// several series.
func (b *bars) finish() {
	if len(b.series[0]) == 0 {
		return
	}
	most := min(DetailBars, 3*DetailBars/max(1, int64(len(b.series)-1)))
	for _, w := range barWidths {
		if w%b.width == 0 && b.count(w) <= most {
			b.widen(w)
			return
		}
	}
	for b.count(b.width) > most {
		b.widen(2 * b.width)
	}
}

// count returns the number of bars at a width.
func (b *bars) count(width int64) int64 {
	last := b.first + int64(len(b.series[0])) - 1
	return last*b.width/width - b.first*b.width/width + 1
}

// timeline returns the bars, of which the first series are the requests.
func (b *bars) timeline() *DetailTimeline {
	if len(b.series[0]) == 0 {
		return nil
	}
	from := time.Unix(b.first*b.width, 0).UTC()
	return &DetailTimeline{from, b.width, b.series[0], b.series[1:]}
}
