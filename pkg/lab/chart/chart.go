// Package chart draws the figures of measurements: error curves with their spread, and errors against what was stated. The
// same data give the same bytes.
package chart

import (
	"bytes"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Axis is one of the two of a figure. It spans the data.
type Axis struct {
	Label string // with the unit: "|Δ ln Z| (nats)"
	Log   bool
	Floor float64 // logarithmic axes: values below it, 0 above all, are drawn at it; 0: 1e-16
}

// Point of a curve. Low and High are the ends of its band, equal to Y where there is none.
type Point struct{ X, Y, Low, High float64 }

// Summary returns the median of the values at x, with the quartiles as its band; NaN where there are none. Values that are NaN
// do not count. Quantiles are interpolated between the sorted values, the least being 0 and the largest 1.
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

// Curve is a line with a marker at every point. Points with a number that is not finite are left out.
type Curve struct {
	Name   string
	Points []Point
}

// Lines is a figure of curves.
type Lines struct {
	Title  string
	X, Y   Axis
	Curves []Curve
}

// Scatter is a figure of points in groups, Y against X, on two axes of the same range.
type Scatter struct {
	Title     string
	X, Y      Axis
	Groups    []Curve   // without bands
	Diagonals []float64 // lines Y = factor · X, named in the legend
}

// WriteSVG draws the figure.
func (l Lines) WriteSVG(w io.Writer) error {
	f := newFigure(l.Title, l.X, l.Y)
	for _, c := range l.Curves {
		f.include(f.usable(c.Points))
	}
	f.axes(false)
	for i, c := range l.Curves {
		if err := f.band(i, f.usable(c.Points)); err != nil {
			return err
		}
	}
	for i, c := range l.Curves {
		f.curve(i, c.Name, f.usable(c.Points), true)
	}
	return f.write(w)
}

// WriteSVG draws the figure.
func (s Scatter) WriteSVG(w io.Writer) error {
	f := newFigure(s.Title, s.X, s.Y)
	for _, g := range s.Groups {
		f.include(f.usable(g.Points))
	}
	f.axes(true)
	for i, g := range s.Groups {
		f.curve(i, g.Name, f.usable(g.Points), false)
	}
	for i, factor := range s.Diagonals {
		f.diagonal(i, factor)
	}
	return f.write(w)
}

// figure is one that is being drawn.
type figure struct {
	*plot.Plot
	x, y                   Axis
	left, right, low, high float64 // extent of the data
	legend                 plot.Legend
}

func newFigure(title string, x, y Axis) *figure {
	for _, a := range []*Axis{&x, &y} {
		if a.Floor == 0 {
			a.Floor = 1e-16
		}
	}
	f := &figure{Plot: plot.New(), x: x, y: y, left: math.Inf(1), right: math.Inf(-1), low: math.Inf(1), high: math.Inf(-1)}
	f.Title.Text, f.Title.Padding = title, vg.Points(8)
	f.Plot.X.Label.Text, f.Plot.Y.Label.Text = x.Label, y.Label
	f.legend = plot.NewLegend()
	f.legend.Top, f.legend.Left = true, true
	f.legend.Padding, f.legend.ThumbnailWidth = vg.Points(3), vg.Points(28)
	for text, size := range map[*font.Font]vg.Length{
		&f.Title.TextStyle.Font: 13, &f.Plot.X.Label.TextStyle.Font: 12, &f.Plot.Y.Label.TextStyle.Font: 12, &f.legend.TextStyle.Font: 11,
		&f.Plot.X.Tick.Label.Font: 10, &f.Plot.Y.Tick.Label.Font: 10,
	} {
		text.Variant, text.Size = "Sans", size
	}
	return f
}

// usable are the points with finite numbers, raised to the floor of logarithmic axes.
func (f *figure) usable(points []Point) []Point {
	var list []Point
	for _, p := range points {
		if s := p.X + p.Y + p.Low + p.High; math.IsNaN(s) || math.IsInf(s, 0) {
			continue
		}
		if f.x.Log {
			p.X = max(p.X, f.x.Floor)
		}
		if f.y.Log {
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

// axes fixes the ranges, the same for both where square, and draws the grid.
func (f *figure) axes(square bool) {
	if square {
		f.left, f.low = min(f.left, f.low), min(f.left, f.low)
		f.right, f.high = max(f.right, f.high), max(f.right, f.high)
	}
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
	a.Min, a.Max = from-room, to+room
}

// decades labels powers of ten, at most about ten of them; where the axis has fewer than two, also 2 and 5 times those.
func decades(from, to float64) []plot.Tick {
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
				t.Label = strconv.FormatFloat(v, 'g', -1, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func (f *figure) write(w io.Writer) error {
	canvas := vgsvg.New(22*vg.Centimeter, 12*vg.Centimeter)
	margin, legend := vg.Points(8), 5*vg.Centimeter
	all := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	f.Draw(draw.Crop(all, 0, -legend-margin, 0, 0))
	f.legend.Draw(draw.Crop(all, all.Size().X-legend, 0, 0, -vg.Points(24)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte(typeface), []byte(typeface+fallback)))
	return err
}

// The typeface the drawing is set in need not be where it is shown; Arial has the same widths.
const (
	typeface = "font-family:Liberation Sans"
	fallback = ",Arial,Helvetica,sans-serif"
)
