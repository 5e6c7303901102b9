package chart

// Values of named things, a line each.

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Dots is a figure with a row per name, the first on top, and in it a dot per group, X across.
type Dots struct {
	Title  string
	X      Axis
	Names  []string
	Groups []Values
	Marks  []float64 // vertical lines
}

// Values are the dots of a group: a Point per name, Y being its value; Low to High is drawn as a line where they differ. Those with a
// number that is not finite are left out.
type Values struct {
	Name   string
	Points []Point
}

// WriteSVG draws the figure.
func (d Dots) WriteSVG(w io.Writer) error {
	f := newFigure(d.Title, d.X, Axis{})
	groups := make([]Curve, len(d.Groups))
	ends := make([]Curve, len(d.Groups))
	for k, g := range d.Groups {
		for i, p := range g.Points {
			row := float64(len(d.Names)-1-i) + 0.5*(float64(len(d.Groups)-1)/2-float64(k))/float64(max(1, len(d.Groups)-1))
			groups[k].Points = append(groups[k].Points, Point{X: p.Y, Y: row, Low: row, High: row})
			if p.Low < p.High {
				ends[k].Points = append(ends[k].Points, Point{X: p.Low, Y: row}, Point{X: p.High, Y: row})
			}
		}
		groups[k].Points, ends[k].Points = f.usable(groups[k].Points), f.usable(ends[k].Points)
		f.include(groups[k].Points)
		f.include(ends[k].Points)
	}
	f.low, f.high = -0.3, float64(len(d.Names))-0.7
	for _, m := range d.Marks {
		f.left, f.right = min(f.left, m), max(f.right, m)
	}
	f.axes(false)
	names := make([]plot.Tick, len(d.Names))
	for i, name := range d.Names {
		names[i] = plot.Tick{Value: float64(len(d.Names) - 1 - i), Label: name}
	}
	f.Plot.Y.Tick.Marker = plot.ConstantTicks(names)
	f.Plot.Y.Tick.Label.Font.Size = 9

	for _, m := range d.Marks {
		f.Add(&plotter.Line{XYs: plotter.XYs{{X: m, Y: f.Plot.Y.Min}, {X: m, Y: f.Plot.Y.Max}},
			LineStyle: draw.LineStyle{Color: color.Gray{Y: 60}, Width: vg.Points(1)}})
	}
	for k := range groups {
		for i := 0; i+1 < len(ends[k].Points); i += 2 {
			a, b := ends[k].Points[i], ends[k].Points[i+1]
			if a.Y != b.Y { // one of two ends was left out
				i--
				continue
			}
			style := lineStyle(k)
			style.Width = vg.Points(0.8)
			f.Add(&plotter.Line{XYs: plotter.XYs{{X: a.X, Y: a.Y}, {X: b.X, Y: b.Y}}, LineStyle: style})
		}
		f.curve(k, d.Groups[k].Name, groups[k].Points, false)
	}
	f.explain()
	return f.write(w)
}
