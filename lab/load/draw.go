package load

// The pictures of a report.

import (
	"bytes"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// curve is a line of a picture.
type curve struct {
	name   string
	points plotter.XYs
}

// Colours that stay apart for colour-blind readers (Okabe and Ito).
var colours = []color.RGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 255},
	{R: 0xd5, G: 0x5e, B: 0x00, A: 255},
	{R: 0x00, G: 0x9e, B: 0x73, A: 255},
}

// drawThroughput draws the jobs offered, answered and refused in every second.
func (r *Report) drawThroughput(w io.Writer) error {
	return picture(w, "jobs per second", "seconds", "jobs/s", false, r.bySecond(
		[]string{"offered", "answered", "refused"},
		func(s Second) []float64 {
			return []float64{float64(s.Offered), float64(s.Answered), float64(s.Refused)}
		}))
}

// drawTimeline draws the latencies of the jobs of every second.
func (r *Report) drawTimeline(w io.Writer) error {
	return picture(w, "latency by intended arrival", "seconds", "ms", true, r.bySecond(
		[]string{"p50", "p99"}, func(s Second) []float64 { return []float64{s.P50, s.P99} }))
}

// bySecond makes curves over the timeline; seconds without a latency are left out where it is to be
// drawn.
func (r *Report) bySecond(names []string, of func(Second) []float64) []curve {
	curves := make([]curve, len(names))
	for i, name := range names {
		curves[i].name = name
		for t, s := range r.Timeline {
			curves[i].points = append(curves[i].points, plotter.XY{X: float64(t) + 0.5, Y: of(s)[i]})
		}
	}
	return curves
}

// drawLatencies draws latency against the share of jobs that take longer: p90, p99, p99.9 at equal
// distances.
func (r *Report) drawLatencies(w io.Writer) error {
	c := curve{name: "arrival to answer"}
	n := len(r.latencies)
	for i, v := range r.latencies {
		if n < 2000 || i%(n/1000) == 0 || i > n-100 {
			c.points = append(c.points, plotter.XY{X: -math.Log10(1 - (float64(i)+0.5)/float64(n)), Y: v})
		}
	}
	return picture(w, "latency quantiles", "−log10(share of jobs that take longer): 1 is p90, 2 is p99",
		"ms", true, []curve{c})
}

// least is where a logarithmic axis begins at the latest.
const least = 0.01

// picture draws curves as SVG.
func picture(w io.Writer, title, x, y string, logarithmic bool, curves []curve) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Y.Min = 0
	if logarithmic {
		p.Y.Min, p.Y.Scale, p.Y.Tick.Marker = math.Inf(1), plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.Legend.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font,
	} {
		f.Variant, f.Size = "Sans", 11
	}

	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 225}, color.Gray{Y: 225}
	p.Add(grid)
	for i, c := range curves {
		points := c.points
		if logarithmic {
			points = nil
			for _, xy := range c.points {
				if xy.Y > 0 {
					points = append(points, plotter.XY{X: xy.X, Y: max(xy.Y, least)})
				}
			}
		}

		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color, line.Width = colours[i%len(colours)], vg.Points(1.6)
		p.Add(line)
		p.Legend.Add(c.name, line)
	}

	if logarithmic { // whole decades, also where there is nothing to draw
		if math.IsInf(p.Y.Min, 1) {
			p.Y.Min, p.Y.Max, p.X.Min, p.X.Max = 1, 10, 0, 1
		}
		p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(p.Y.Min))), math.Pow(10,
			math.Floor(math.Log10(p.Y.Max))+1)
	}

	p.Legend.Top, p.Legend.Left = true, true
	canvas := vgsvg.New(18*vg.Centimeter, 8*vg.Centimeter)
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(8), -vg.Points(8), vg.Points(8), -vg.Points(8)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}
