package chart

// Points of one value against another.

import (
	"image/color"
	"io"
	"strconv"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Scatter is a figure of points in groups, Y against X, on two axes of the same range.
type Scatter struct {
	Title     string
	X, Y      Axis
	Groups    []Curve   // without bands
	Diagonals []float64 // lines Y = factor · X, named in the legend
}

// WriteSVG draws the figure.
func (s Scatter) WriteSVG(w io.Writer) error {
	f := newFigure(s.Title, s.X, s.Y)
	for _, g := range s.Groups {
		f.include(f.usable(g.Points))
	}
	f.left, f.low = min(f.left, f.low), min(f.left, f.low)
	f.right, f.high = max(f.right, f.high), max(f.right, f.high)
	f.axes()
	for i, g := range s.Groups {
		f.curve(i, g, false)
	}
	for i, factor := range s.Diagonals {
		f.diagonal(i, factor)
	}
	f.explain()
	return f.write(w)
}

// diagonal draws Y = factor · X across the figure.
func (f *figure) diagonal(i int, factor float64) {
	from, to := max(f.Plot.X.Min, f.Plot.Y.Min/factor), min(f.Plot.X.Max, f.Plot.Y.Max/factor)
	if !(from < to) {
		return
	}
	line := &plotter.Line{XYs: plotter.XYs{{X: from, Y: factor * from}, {X: to, Y: factor * to}}}
	line.LineStyle = draw.LineStyle{Color: color.Gray{Y: 60}, Width: vg.Points(1.2)}
	if i > 0 {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3 * float64(i))}
	}
	f.Add(line)
	name := "y = " + strconv.FormatFloat(factor, 'g', -1, 64) + " x"
	f.names = append(f.names, name)
	f.legend.Add(name, line)
}
