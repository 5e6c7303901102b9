// Package chart draws the figures of measurements: error curves with their spread, and errors against stated ones. The
// same data give the same bytes.
package chart

import (
	"bytes"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Axis is one of the two of a figure. It spans the data.
type Axis struct {
	Label string // with the unit: "|Δ ln Z| (nats)"
	Log   bool
	// logarithmic axes: values below it, 0 above all, are marked at it, and the legend says so; 0: 1e-16
	Floor float64
}

// Point of a curve. Low and High are the ends of its band, equal to Y where there is none.
type Point struct {
	X, Y, Low, High float64
	below           bool // the floor of an axis: drawn in place of the value
}

// Summary returns the median of the values at x, with the quartiles as its band; NaN where there are
// none. Values that are NaN do not count. Quantiles are interpolated between the sorted values, the
// least being 0 and the largest 1.
func Summary(x float64, values []float64) Point {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(sorted)
	at := func(q float64) float64 {
		if len(sorted) == 0 {
			return math.NaN()
		}
		whole, part := math.Modf(q * float64(len(sorted)-1))
		k := int(whole)
		if part == 0 {
			return sorted[k]
		}
		return sorted[k] + part*(sorted[k+1]-sorted[k])
	}
	return Point{X: x, Y: at(0.5), Low: at(0.25), High: at(0.75)}
}

// Curve is a line with a marker at every point, unless it is plain. Points with a number that is not finite are left
// out.
type Curve struct {
	Name   string
	Points []Point
	Plain  bool
}

// figure is one that is being drawn.
type figure struct {
	*plot.Plot
	x, y                   Axis
	left, right, low, high float64 // extent of the data
	legend                 plot.Legend
	names                  []string // in the legend
	rows                   []string // names of the rows from the top, in place of labels of the y axis; none: those
	height                 vg.Length
	below                  bool // some point is below a floor
}

func newFigure(title string, x, y Axis) *figure {
	for _, a := range []*Axis{&x, &y} {
		if a.Floor == 0 {
			a.Floor = 1e-16
		}
	}

	f := &figure{
		Plot:  plot.New(),
		x:     x,
		y:     y,
		left:  math.Inf(1),
		right: math.Inf(-1),
		low:   math.Inf(1),
		high:  math.Inf(-1),

		height: dataHeight,
	}

	f.Title.Text, f.Title.Padding = title, vg.Points(8)
	f.Plot.X.Label.Text = x.Label // the y axis' label stands above it: see write
	f.legend = plot.NewLegend()
	f.legend.Top, f.legend.Left = true, true
	f.legend.Padding, f.legend.ThumbnailWidth = vg.Points(3), thumbnail
	for of, size := range map[*font.Font]vg.Length{
		&f.Title.TextStyle.Font: 13, &f.Plot.X.Label.TextStyle.Font: 12, &f.Plot.Y.Label.TextStyle.Font: 12,
		&f.legend.TextStyle.Font:  11,
		&f.Plot.X.Tick.Label.Font: 10, &f.Plot.Y.Tick.Label.Font: 10,
	} {
		of.Variant, of.Size = "Sans", size
	}

	return f
}

// usable are the points with finite numbers, raised to the floor of logarithmic axes, and marked
// there.
func (f *figure) usable(points []Point) []Point {
	var list []Point
	for _, p := range points {
		if s := p.X + p.Y + p.Low + p.High; math.IsNaN(s) || math.IsInf(s, 0) {
			continue
		}
		if f.x.Log {
			p.below = p.X < f.x.Floor
			p.X = max(p.X, f.x.Floor)
		}
		if f.y.Log {
			p.below = p.below || p.Y < f.y.Floor
			p.Y, p.Low, p.High = max(p.Y, f.y.Floor), max(p.Low, f.y.Floor), max(p.High, f.y.Floor)
		}
		list = append(list, p)
	}
	return list
}

func (f *figure) include(points []Point) {
	for _, p := range points {
		f.left, f.right = min(f.left, p.X), max(f.right, p.X)
		f.low, f.high = min(f.low, p.Low, p.Y), max(f.high, p.High, p.Y)
	}
}

// axes fixes the ranges and draws the grid.
func (f *figure) axes() {
	scale(&f.Plot.X, f.x.Log, f.left, f.right)
	scale(&f.Plot.Y, f.y.Log, f.low, f.high)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 225}, color.Gray{Y: 225}
	f.Add(grid)
}

// scale spans the data with some room; a figure without data has an axis too.
func scale(a *plot.Axis, log bool, from, to float64) {
	if from > to {
		from, to = 1, 1
	}
	if log {
		a.Min, a.Max, a.Scale, a.Tick.Marker = from/1.5, to*1.5, plot.LogScale{}, plot.TickerFunc(decades)
		return
	}
	room := (to - from) / 40
	if room == 0 {
		room = 1
	}
	a.Min, a.Max, a.Tick.Marker = from-room, to+room, plot.TickerFunc(steps)
}

// steps labels multiples of 1, 2 or 5 times a power of ten, four to nine of them.
func steps(from, to float64) []plot.Tick {
	size := math.Pow(10, math.Floor(math.Log10((to-from)/4)))
	for k := 0; (to-from)/size > 9; k++ {
		size *= []float64{2, 2.5, 2}[k%3]
	}
	var ticks []plot.Tick
	for k := math.Ceil(from / size); k*size <= to; k++ {
		v, _ := strconv.ParseFloat(strconv.FormatFloat(k*size, 'g', 12, 64), 64) // 0.3 and not 0.30000000000000004
		ticks = append(ticks, plot.Tick{Value: v, Label: label(v)})
	}
	return ticks
}

// label writes the value of a tick: 0.001, 20, 1e-6.
func label(v float64) string {
	s := strconv.FormatFloat(v+0, 'g', -1, 64) // 0 and not -0
	if a := math.Abs(v); a != 0 && (a < 1e-3 || a >= 1e5) {
		s = strconv.FormatFloat(v, 'e', -1, 64)
	}
	mantissa, exponent, ok := strings.Cut(s, "e")
	if !ok {
		return s
	}
	return mantissa + "e" + strings.NewReplacer("+0", "", "-0", "-", "+", "").Replace(exponent)
}

// decades labels powers of ten, at most about ten of them; where the axis has few, also 2 and 5
// times those, and where it spans less than a factor of five, as steps does.
func decades(from, to float64) []plot.Tick {
	if to < 5*from {
		return steps(from, to)
	}
	var ticks []plot.Tick
	first, last := int(math.Floor(math.Log10(from))), int(math.Ceil(math.Log10(to)))
	every := 1 + (last-first)/10
	for decade := first; decade <= last; decade++ {
		for digit := 1; digit <= 9; digit++ {
			v, err := strconv.ParseFloat(strconv.Itoa(digit)+"e"+strconv.Itoa(decade), 64)
			if err != nil || v < from || v > to || digit > 1 && every > 1 {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 && decade%every == 0 || (digit == 2 || digit == 5) && last-first <= 3 {
				t.Label = label(v)
			}
			ticks = append(ticks, t)
		}
	}

	return ticks
}

// The parts of a figure.
const (
	dataWidth  = 17 * vg.Centimeter
	dataHeight = 12 * vg.Centimeter
	margin     = vg.Length(8)
	headline   = vg.Length(42) // title, and the label of the y axis
	thumbnail  = vg.Length(28)
)

func (f *figure) write(w io.Writer) error {
	legend := legendWidth(f.legend.TextStyle, f.names...)
	canvas := vgsvg.New(dataWidth+legend+3*margin, f.height)
	all := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	title := f.Title.TextStyle
	title.XAlign, title.YAlign = draw.XLeft, draw.YTop
	all.FillText(title, vg.Point{X: all.Min.X, Y: all.Max.Y}, f.Title.Text)
	beside := f.Plot.Y.Label.TextStyle
	beside.Rotation, beside.XAlign, beside.YAlign = 0, draw.XLeft, draw.YBottom
	all.FillText(beside, vg.Point{X: all.Min.X, Y: all.Max.Y - headline + margin}, f.y.Label)
	f.Title.Text = ""
	named := draw.Crop(all, 0, -legend-margin, 0, -headline)
	f.Draw(f.nameRows(named))
	f.legend.Draw(draw.Crop(all, all.Size().X-legend, 0, 0, -headline))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(portable(b.Bytes()))
	return err
}

// otherFonts bounds the width of a text in other typefaces, relative to the drawing's own, for viewers without it. DejaVu
// Sans, the widest of the usual ones, is some 15 percent wider.
const otherFonts = 1.3

// legendWidth returns the width of a legend with these names, in any font.
func legendWidth(style text.Style, names ...string) vg.Length {
	widest := vg.Length(0)
	for _, name := range names {
		widest = max(widest, style.Width(name))
	}
	return thumbnail + margin + otherFonts*widest
}

// portable names the fonts that take the place of the drawing's typeface where that is not at hand;
// Arial has the same widths.
func portable(svg []byte) []byte {
	const typeface = "font-family:Liberation Sans"
	return bytes.ReplaceAll(svg, []byte(typeface), []byte(typeface+",Arial,Helvetica,sans-serif"))
}
