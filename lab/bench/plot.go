// The cactus plot, drawn.

package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"github.com/basetensor/basetensor/lab/chart"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// WriteSVG draws the curves of the series: models solved within a time each, against that time on a
// logarithmic axis. The axis ends at limit seconds, or at the slowest solved model where there is no
// limit (0).
func WriteSVG(w io.Writer, title string, series []Series, clock Clock, limit float64) error {
	p, legend, names := plot.New(), plot.NewLegend(), []string(nil)
	// beside the curves; the lines left of their names, which may be wider than measured
	legend.Top, legend.Left = true, true
	p.Title.Text, p.Title.Padding = title, vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = "seconds per model ("+string(clock)+")", "models solved within this time"
	from, to, most := extent(series, limit)
	p.X.Min, p.X.Max, p.X.Scale, p.X.Tick.Marker = from, to, plot.LogScale{}, plot.TickerFunc(timeTicks)
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, float64(most), plot.TickerFunc(countTicks)
	for text, size := range map[*font.Font]vg.Length{
		&p.Title.TextStyle.Font: 14, &p.X.Label.TextStyle.Font: 12, &p.Y.Label.TextStyle.Font: 12,
		&legend.TextStyle.Font: 12,
		&p.X.Tick.Label.Font:   10, &p.Y.Tick.Label.Font: 10,
	} {
		text.Variant, text.Size = "Sans", size
	}

	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 225}, color.Gray{Y: 225}
	p.Add(grid)
	for i, s := range series {
		corners := s.points(from, to)
		xys := make(plotter.XYs, len(corners))
		for k, c := range corners {
			xys[k].X, xys[k].Y = c.Seconds, c.Solved
		}
		line, err := plotter.NewLine(xys)
		if err != nil {
			return fmt.Errorf("curve %q: %w", s.Name, err)
		}
		line.LineStyle = curveStyle(i)
		p.Add(line)
		legend.Add(s.label(), line)
		names = append(names, s.label())
	}

	legend.Padding, legend.ThumbnailWidth = vg.Points(3), vg.Points(28)
	margin, beside := vg.Points(8), chart.LegendWidth(legend.TextStyle, names...)
	canvas := vgsvg.New(18*vg.Centimeter+beside+margin, 12*vg.Centimeter)
	all := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	p.Draw(draw.Crop(all, 0, -beside-margin, 0, 0))
	legend.Draw(draw.Crop(all, all.Size().X-beside, 0, 0, -vg.Points(30)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(chart.Portable(b.Bytes()))
	return err
}

// extent is the range of the axes: some room left of the quickest solved model, and above all models
// that were tried.
func extent(series []Series, limit float64) (from, to float64, most int) {
	quickest, slowest := math.Inf(1), limit
	for _, s := range series {
		most = max(most, s.Total)
		if n := len(s.Times); n > 0 {
			quickest, slowest = min(quickest, s.Times[0]), max(slowest, s.Times[n-1])
		}
	}
	if math.IsInf(quickest, 1) {
		quickest = 0.1
	}
	from = max(quickest, leastSeconds) * 0.7
	return from, max(slowest, 10*from), max(most, 1)
}

// Colours that stay apart for colour-blind readers (Okabe and Ito); dashes from the second round on.
var curveColours = []color.RGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 255}, {R: 0xd5, G: 0x5e, B: 0x00, A: 255}, {R: 0x00, G: 0x9e, B: 0x73, A: 255},
	{R: 0xcc, G: 0x79, B: 0xa7, A: 255}, {R: 0xe6, G: 0x9f, B: 0x00, A: 255}, {R: 0x56, G: 0xb4, B: 0xe9, A: 255},
}

func curveStyle(i int) draw.LineStyle {
	style := draw.LineStyle{Color: curveColours[i%len(curveColours)], Width: vg.Points(1.8)}
	if round := i / len(curveColours); round > 0 {
		style.Dashes = []vg.Length{vg.Points(6), vg.Points(2 * float64(round))}
	}
	return style
}

// timeTicks labels 1, 2 and 5 of every decade, and marks the others.
func timeTicks(from, to float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Floor(math.Log10(from)); decade <= math.Log10(to); decade++ {
		for digit := 1; digit <= 9; digit++ {
			// Parsed and not multiplied: 0.3 and not 0.30000000000000004.
			v, err := strconv.ParseFloat(fmt.Sprintf("%de%d", digit, int(decade)), 64)
			if err != nil || v < from || v > to {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || digit == 2 || digit == 5 {
				t.Label = strconv.FormatFloat(v, 'f', -1, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// countTicks labels whole numbers only, at most a dozen.
func countTicks(from, to float64) []plot.Tick {
	step := 1.0
	for i := 0; (to-from)/step > 12; i++ {
		step *= []float64{2, 2.5, 2}[i%3] // 1, 2, 5, 10, 20, …
	}
	var ticks []plot.Tick
	for v := math.Ceil(from/step) * step; v <= to; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', 0, 64)})
	}
	return ticks
}
