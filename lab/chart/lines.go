package chart

// Curves of values, with their spread.

import (
	"fmt"
	"io"

	"gonum.org/v1/plot/plotter"
)

// Lines is a figure of curves.
type Lines struct {
	Title  string
	X, Y   Axis
	Curves []Curve
}

// WriteSVG draws the figure.
func (l Lines) WriteSVG(w io.Writer) error {
	f := newFigure(l.Title, l.X, l.Y)
	for _, c := range l.Curves {
		f.include(f.usable(c.Points))
	}
	f.axes()
	for i, c := range l.Curves {
		if err := f.band(i, f.usable(c.Points)); err != nil {
			return err
		}
	}
	for i, c := range l.Curves {
		f.curve(i, c, true)
	}
	f.explain()
	return f.write(w)
}

// band draws the spread of the i-th curve, where it has one.
func (f *figure) band(i int, points []Point) error {
	var rim plotter.XYs
	spread := false
	for _, p := range points {
		rim = append(rim, plotter.XY{X: p.X, Y: p.High})
		spread = spread || p.High > p.Low
	}

	if !spread || len(points) < 2 {
		return nil
	}
	for k := len(points) - 1; k >= 0; k-- {
		rim = append(rim, plotter.XY{X: points[k].X, Y: points[k].Low})
	}

	polygon, err := plotter.NewPolygon(rim)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	shade := palette[i%len(palette)]
	shade.A = 40
	polygon.Color, polygon.LineStyle.Width = shade, 0
	f.Add(polygon)
	return nil
}
