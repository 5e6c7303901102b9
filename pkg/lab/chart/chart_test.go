package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

func lines() Lines {
	l := Lines{Title: "Error against strength", X: Axis{Label: "Δ"}, Y: Axis{Label: "|Δ ln Z| (nats)", Log: true}}
	for i, name := range []string{"bp", "mean-field", "bucket <8>", "truncated", "regions", "six", "seven", "eight"} {
		c := Curve{Name: name}
		for k := range 8 {
			y := math.Exp(float64(k)/2 - 3*float64(i))
			c.Points = append(c.Points, Point{X: float64(k) / 3, Y: y, Low: y / 2, High: y * 3})
		}
		c.Points = append(c.Points, Point{X: 4, Y: math.NaN()}, Point{X: 5, Y: math.Inf(1)})
		l.Curves = append(l.Curves, c)
	}
	l.Curves[3].Points[0].Low = 0
	return l
}

func scatter() Scatter {
	s := Scatter{Title: "Calibration", X: Axis{Label: "stated (nats)", Log: true}, Y: Axis{Label: "error (nats)", Log: true}, Diagonals: []float64{1, 3}}
	for i, name := range []string{"grid", "complete"} {
		c := Curve{Name: name}
		for k := range 30 {
			x := math.Pow(10, -float64(k)/3)
			y := x * math.Exp(math.Sin(float64(k*(i+2))))
			c.Points = append(c.Points, Point{X: x, Y: y, Low: y, High: y})
		}
		s.Groups = append(s.Groups, c)
	}
	return s
}

func TestFigures(t *testing.T) {
	for name, draw := range map[string]func(io.Writer) error{"lines": lines().WriteSVG, "scatter": scatter().WriteSVG, "empty": Lines{Title: "empty", X: Axis{Log: true}}.WriteSVG} {
		var first, again bytes.Buffer
		if err := errors.Join(draw(&first), draw(&again)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(first.Bytes(), again.Bytes()) {
			t.Errorf("%s: not the same twice", name)
		}
		if s := first.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("%s: a number in the drawing is not finite", name)
		}
		for d := xml.NewDecoder(bytes.NewReader(first.Bytes())); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, text := range map[string][]string{
			"lines":   {"Error against strength", "|Δ ln Z| (nats)", ">bp<", "bucket &lt;8&gt;", "fill-opacity"},
			"scatter": {"stated (nats)", "y = 1 x", "y = 3 x", ">complete<"},
			"empty":   {">empty<"},
		}[name] {
			if !strings.Contains(first.String(), text) {
				t.Errorf("%s: no %q in the drawing", name, text)
			}
		}
		if dir := os.Getenv("BTN_FIGURES"); dir != "" {
			if err := os.WriteFile(dir+"/"+name+".svg", first.Bytes(), 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFloor: a value of 0 is drawn at the floor of its axis, and the axis ends there.
func TestFloor(t *testing.T) {
	f := newFigure("", Axis{Log: true, Floor: 1e-3}, Axis{Log: true})
	got := f.usable([]Point{{X: 0, Y: 0}, {X: 1, Y: 1, Low: math.NaN()}, {X: 2, Y: -1, High: 5}})
	if want := []Point{{1e-3, 1e-16, 1e-16, 1e-16}, {2, 1e-16, 1e-16, 5}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestColoursDifferInGrey: luma by ITU-R BT.601, of 256 steps.
func TestColoursDifferInGrey(t *testing.T) {
	var luma []float64
	for _, c := range palette {
		luma = append(luma, 0.299*float64(c.R)+0.587*float64(c.G)+0.114*float64(c.B))
	}
	slices.Sort(luma)
	for i := 1; i < len(luma); i++ {
		if luma[i]-luma[i-1] < 20 {
			t.Errorf("two colours are %.0f and %.0f in grey", luma[i-1], luma[i])
		}
	}
	if luma[len(luma)-1] > 200 {
		t.Errorf("a colour is %.0f in grey: too pale on white", luma[len(luma)-1])
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Point
	}{
		{[]float64{5}, Point{2, 5, 5, 5}},
		{[]float64{4, math.NaN(), 1, 2, 3, 5}, Point{2, 3, 2, 4}},
		{[]float64{1, 2}, Point{2, 1.5, 1.25, 1.75}},
		{[]float64{1, math.Inf(1), math.Inf(1), 0, 2}, Point{2, 2, 1, math.Inf(1)}},
	} {
		if got := Summary(2, c.values); got != c.want {
			t.Errorf("of %v: %v, want %v", c.values, got, c.want)
		}
	}
	if p := Summary(2, nil); !math.IsNaN(p.Y) {
		t.Errorf("of nothing: %v", p)
	}
}

func TestDecades(t *testing.T) {
	labels := func(from, to float64) (list []string) {
		for _, tick := range decades(from, to) {
			if tick.Label != "" {
				list = append(list, tick.Label)
			}
		}
		return list
	}
	if got := labels(0.9, 60); !slices.Equal(got, []string{"1", "2", "5", "10", "20", "50"}) {
		t.Errorf("0.9 to 60: %v", got)
	}
	if got := labels(1e-16, 10); len(got) < 6 || len(got) > 11 || got[0] != "1e-16" {
		t.Errorf("1e-16 to 10: %v", got)
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	err := WriteCSV(&b, []string{"name", "n", "seed", "error", "exact"}, [][]any{
		{"a,b", 3, uint64(7), 1.0 / 3, true}, {"", -1, uint64(0), math.NaN(), false}, {"c", 0, uint64(1), math.Inf(-1), false},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "name,n,seed,error,exact\n\"a,b\",3,7,0.3333333333333333,true\n,-1,0,,false\nc,0,1,-inf,false\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	for want, rows := range map[string][][]any{"row 0 has 1 cells, there are 2": {{1}}, "row 1, column n: a []int is no cell": {{"a", 1}, {"a", []int{1}}}} {
		if err := WriteCSV(io.Discard, []string{"name", "n"}, rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
