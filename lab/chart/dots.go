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

// rowHeight is the height of the row of a name, above and below the data as well.
const rowHeight = 0.64 * vg.Centimeter

// Dots is a figure with a row per name, the first on top, and in it a dot per group, X across.
type Dots struct {
	Title  string
	X      Axis
	Names  []string
	Groups []Values
	Marks  []Mark
}

// Mark is a vertical line, named in the legend.
type Mark struct {
	X    float64
	Name string
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
		groups[k].Name = g.Name
		for i, p := range g.Points {
			row := float64(len(d.Names)-1-i) + 0.5*(float64(len(d.Groups)-1)/2-float64(k))/float64(max(1, len(d.Groups)-1))
			groups[k].Points = append(groups[k].Points, Point{X: p.Y, Y: row, Low: row, High: row})
			if p.Low < p.High {
				ends[k].Points = append(ends[k].Points, Point{X: p.Low, Y: row}, Point{X: p.High, Y: row})
			}
		}
		ends[k].Points = f.usable(ends[k].Points)
		f.include(f.usable(groups[k].Points))
		f.include(ends[k].Points)
	}
	f.low, f.high = -0.3, float64(len(d.Names))-0.7
	for _, m := range d.Marks {
		f.left, f.right = min(f.left, m.X), max(f.right, m.X)
	}
	f.axes()
	rows := make([]plot.Tick, len(d.Names))
	for i := range d.Names {
		rows[i] = plot.Tick{Value: float64(len(d.Names) - 1 - i)}
	}
	f.Plot.Y.Tick.Marker = plot.ConstantTicks(rows)
	f.rows, f.height = d.Names, max(f.height, vg.Length(len(d.Names))*rowHeight)

	var marks []*plotter.Line
	for k, m := range d.Marks {
		style := draw.LineStyle{Color: color.Gray{Y: 60}, Width: vg.Points(1)}
		if k > 0 {
			style.Dashes = []vg.Length{vg.Points(5), vg.Points(3 * float64(k))}
		}
		line := &plotter.Line{XYs: plotter.XYs{{X: m.X, Y: f.Plot.Y.Min}, {X: m.X, Y: f.Plot.Y.Max}}, LineStyle: style}
		f.Add(line)
		marks = append(marks, line)
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
		f.curve(k, groups[k], false)
	}
	for k, line := range marks {
		f.names = append(f.names, d.Marks[k].Name)
		f.legend.Add(d.Marks[k].Name, line)
	}
	f.explain()
	return f.write(w)
}

// nameRows writes the names of rows at the left of a canvas, and returns the rest of it for the data.
func (f *figure) nameRows(c draw.Canvas) draw.Canvas {
	if len(f.rows) == 0 {
		return c
	}
	style := f.Plot.Y.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	widest := vg.Length(0)
	for _, name := range f.rows {
		widest = max(widest, style.Width(name))
	}
	rest := draw.Crop(c, otherFonts*widest, 0, 0, 0)
	data := f.DataCanvas(rest)
	for i, name := range f.rows {
		c.FillText(style, vg.Point{X: c.Min.X, Y: data.Y(f.Plot.Y.Norm(float64(len(f.rows) - 1 - i)))}, name)
	}
	return rest
}
