package simulation

import (
	"bytes"
	"image/color"
	"math"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that people of all eyesights tell apart, in both schemes (Okabe and Ito).
var (
	blue   = color.RGBA{0x00, 0x72, 0xB2, 0xFF}
	orange = color.RGBA{0xD5, 0x5E, 0x00, 0xFF}
	grey   = color.RGBA{0x99, 0x99, 0x99, 0xFF}
)

// kinds are the colours of the algorithms, which take turns from rank to rank.
var kinds = [...]color.RGBA{orange, blue}

// dark turns the picture, which is drawn on white, for those who like it dark, and names fonts that
// are at hand.
const dark = `<style>text{font-family:"Liberation Sans",Arial,Helvetica,sans-serif!important}` +
	`@media(prefers-color-scheme:dark){svg{filter:invert(.93) hue-rotate(180deg)}}</style>`

// picture draws what happened to f, as SVG.
func (f *fleet) picture() ([]byte, error) {
	const width, height = 8.5 * vg.Inch, 10.5 * vg.Inch
	canvas := vgsvg.New(width, height)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Path())
	panels := []func(*plot.Plot) error{f.drawLoad, f.drawCalls, f.drawGrants, f.drawShort}
	tiles := draw.Tiles{
		Rows: len(panels), Cols: 1, PadY: vg.Points(14), PadTop: vg.Points(6),
		PadBottom: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(10),
	}
	plots := make([][]*plot.Plot, len(panels))
	for i, drawPanel := range panels {
		p := plot.New()
		if err := drawPanel(p); err != nil {
			return nil, err
		}
		style(p)
		plots[i] = []*plot.Plot{p}
	}
	for i, row := range plot.Align(plots, tiles, all) {
		plots[i][0].Draw(row[0])
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(svg.String(), "<g ")
	return []byte(head + dark + "\n<g " + rest), nil
}

// style gives p the fonts and the room that all have.
func style(p *plot.Plot) {
	sans := func(size vg.Length) font.Font {
		return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	}
	p.Title.TextStyle.Font, p.Title.Padding = sans(12), vg.Points(6)
	p.Legend.TextStyle.Font, p.Legend.Padding = sans(10), vg.Points(2)
	// There is room, whatever the width of the font.
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, 5.2*vg.Inch
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font, a.Padding = sans(10), sans(10), 0
	}
}

// drawLoad shows the calls of the store over time.
func (f *fleet) drawLoad(p *plot.Plot) error {
	without, with := make(plotter.XYs, binCount), make(plotter.XYs, binCount)
	part := f.length / binCount
	for i := range f.bins {
		at := (time.Duration(i)*part + part/2).Minutes()
		without[i] = plotter.XY{X: at, Y: float64(f.bins[i].asked.Load()) / part.Seconds()}
		with[i] = plotter.XY{X: at, Y: float64(f.bins[i].calls.Load()) / part.Seconds()}
	}
	p.Title.Text = "Load on the store"
	p.X.Label.Text, p.Y.Label.Text = "minutes", "calls a second"
	p.X.Min, p.X.Max = 0, f.length.Minutes()
	p.X.Tick.Marker = ticks(0, f.length.Minutes(), func(m float64) float64 { return m + 10 })
	upright(p, 2.2*f.rate, f.rate/2)
	if err := addLine(p, "without caching", without, grey); err != nil {
		return err
	}
	return addLine(p, "with lease and denycache", with, blue)
}

// drawCalls shows how many calls the requests for a key take.
func (f *fleet) drawCalls(p *plot.Plot) error {
	p.Title.Text = "Calls of the store for 100 requests, by rank of the key"
	p.Y.Label.Text = "calls"
	byRank(p, f)
	upright(p, 140, 20)
	return f.addKinds(p, func(k *ledger) float64 {
		return 100 * float64(k.calls) / float64(k.asked)
	})
}

// drawGrants shows what was asked for and granted beside the bound.
func (f *fleet) drawGrants(p *plot.Plot) error {
	p.Title.Text = "Grants against the bound: what the limit had granted at its fullest, by rank"
	p.Y.Label.Text = "% of the limit"
	byRank(p, f)
	upright(p, 140, 20)
	bound := plotter.XYs{{X: 1, Y: 100}, {X: float64(f.keys), Y: 100}}
	if err := addLine(p, "the bound", bound, grey); err != nil {
		return err
	}
	return f.addKinds(p, (*ledger).fill)
}

// drawShort shows by how much less was granted than by one limiter.
func (f *fleet) drawShort(p *plot.Plot) error {
	p.Title.Text = "How short: what the limit still had when it refused, at worst, by rank"
	p.Y.Label.Text = "% of the limit"
	byRank(p, f)
	upright(p, 50, 10)
	return f.addKinds(p, func(k *ledger) float64 {
		return percent(max(k.short, 0), k.limit.Capacity())
	})
}

// byRank lets the ranks of keys lie along p, as powers.
func byRank(p *plot.Plot, f *fleet) {
	p.X.Label.Text = "rank"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = ticks(1, float64(f.keys), func(r float64) float64 { return 10 * r })
	p.X.Min, p.X.Max = 0.9, float64(f.keys)
}

// addKinds draws what of says of each key that was asked for, each algorithm in its colour.
func (f *fleet) addKinds(p *plot.Plot, of func(*ledger) float64) error {
	for kind, c := range kinds {
		var points plotter.XYs
		for r := kind; r < len(f.byRank); r += 2 {
			if k := f.byRank[r]; k.asked > 0 && shown(r) {
				points = append(points, plotter.XY{X: float64(r + 1), Y: of(k)})
			}
		}
		s, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
		p.Add(s)
		p.Legend.Add(f.byRank[kind].limit.Algorithm().String(), s)
	}
	return nil
}

// shown reports whether a rank is drawn: all of the first, and of the rest as many as can be told
// apart.
func shown(r int) bool {
	step := int(math.Pow(10, math.Floor(math.Log10(float64(r+1)))) / 20)
	return step <= 1 || (r/2)%step == 0
}

// upright lets p reach from 0 to most.
func upright(p *plot.Plot, most, step float64) {
	p.Y.Min, p.Y.Max = 0, most
	p.Y.Tick.Marker = ticks(0, most, func(y float64) float64 { return y + step })
}

// ticks are from first to last, each from the one before by next.
func ticks(first, last float64, next func(float64) float64) plot.ConstantTicks {
	var all plot.ConstantTicks
	for v := first; v <= last; v = next(v) {
		all = append(all, plot.Tick{Value: v, Label: words.Sprintf("%.0f", v)})
	}
	return all
}

func addLine(p *plot.Plot, name string, points plotter.XYs, c color.RGBA) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color, l.Width = c, vg.Points(1.5)
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

// fill is how full the limit was at its fullest, in percent.
func (k *ledger) fill() float64 {
	return percent(k.fullest, k.limit.Capacity()*k.limit.Period().Microseconds())
}

func percent(n, of int64) float64 { return 100 * float64(n) / float64(max(of, 1)) }
