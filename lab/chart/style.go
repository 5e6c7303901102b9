package chart

// Lines and markers.

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// palette goes from dark to light, so that its colours stay apart in grey; neighbours differ in hue.
var palette = []color.NRGBA{
	{R: 0x20, G: 0x18, B: 0x4f, A: 255}, {R: 0xd2, G: 0x50, B: 0x2a, A: 255}, {R: 0x0b, G: 0x6f, B: 0xb3, A: 255},
	{R: 0xe0, G: 0xa1, B: 0x1c, A: 255}, {R: 0x8a, G: 0x12, B: 0x53, A: 255}, {R: 0x3b, G: 0xb3, B: 0x7a, A: 255},
	{R: 0x8c, G: 0xcd, B: 0xf0, A: 255},
}

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{},
	draw.RingGlyph{}, draw.BoxGlyph{}, draw.PlusGlyph{},
}

func lineStyle(i int) draw.LineStyle {
	style := draw.LineStyle{Color: palette[i%len(palette)], Width: vg.Points(1.6)}
	if round := i / len(palette); round > 0 {
		style.Dashes = []vg.Length{vg.Points(6), vg.Points(2 * float64(round))}
	}
	return style
}

func glyphStyle(i int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: palette[i%len(palette)], Radius: vg.Points(2.6), Shape: shapes[i%len(shapes)]}
}

// curve draws the i-th curve, or only its points, and names it in the legend. A value below a floor is no point of the
// line: it is marked.
func (f *figure) curve(i int, c Curve, joined bool) {
	var known, below, run plotter.XYs
	line := func() {
		if joined && len(run) > 1 {
			f.Add(&plotter.Line{XYs: run, LineStyle: lineStyle(i)})
		}
		run = nil
	}
	for _, p := range f.usable(c.Points) {
		at := plotter.XY{X: p.X, Y: p.Y}
		if p.below {
			below = append(below, at)
			line()
			continue
		}
		known, run = append(known, at), append(run, at)
	}

	line()
	var legend []plot.Thumbnailer
	if joined {
		legend = append(legend, &plotter.Line{LineStyle: lineStyle(i)})
	}
	if !c.Plain {
		glyphs := &plotter.Scatter{XYs: known, GlyphStyle: glyphStyle(i)}
		f.Add(glyphs)
		legend = append(legend, glyphs)
	}
	if len(below) > 0 {
		f.below = true
		f.Add(&plotter.Scatter{XYs: below, GlyphStyle: belowStyle(palette[i%len(palette)])})
	}
	f.names = append(f.names, c.Name)
	f.legend.Add(c.Name, legend...)
}

// explain explains the marks at a floor in the legend.
func (f *figure) explain() {
	if !f.below {
		return
	}
	floor := f.y.Floor
	if !f.y.Log {
		floor = f.x.Floor
	}
	name := "below " + label(floor)
	f.names = append(f.names, name)
	f.legend.Add(name, &plotter.Scatter{GlyphStyle: belowStyle(color.NRGBA{R: 60, G: 60, B: 60, A: 255})})
}

// belowStyle marks a value that is below the floor of its axis.
func belowStyle(c color.NRGBA) draw.GlyphStyle {
	return draw.GlyphStyle{Color: c, Radius: vg.Points(4), Shape: downward{}}
}

// downward is an open triangle that points down.
type downward struct{}

// DrawGlyph draws it.
func (downward) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	r := style.Radius
	var p vg.Path
	p.Move(vg.Point{X: at.X - r, Y: at.Y + 0.7*r})
	p.Line(vg.Point{X: at.X + r, Y: at.Y + 0.7*r})
	p.Line(vg.Point{X: at.X, Y: at.Y - r})
	p.Close()
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(1)})
	c.Stroke(p)
}
