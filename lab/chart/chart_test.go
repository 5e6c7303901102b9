package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func lines() Lines {
	l := Lines{Title: "Error against strength", X: Axis{Label: "Δ"}, Y: Axis{Label: "|Δ ln Z| (nats)", Log: true}}
	for i, name := range []string{
		"bp", "mean-field", "bucket <8>", "truncated", "regions", "six", "seven", "eight",
	} {
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
	s := Scatter{
		Title:     "Calibration",
		X:         Axis{Label: "stated (nats)", Log: true},
		Y:         Axis{Label: "error (nats)", Log: true},
		Diagonals: []float64{1, 3},
	}
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
	for name, draw := range map[string]func(io.Writer) error{
		"lines":   lines().WriteSVG,
		"scatter": scatter().WriteSVG,
		"empty":   Lines{Title: "empty", X: Axis{Log: true}}.WriteSVG,
	} {
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
	if want := []Point{{1e-3, 1e-16, 1e-16, 1e-16, true}, {2, 1e-16, 1e-16, 5, true}}; !slices.Equal(got, want) {
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
		{[]float64{5}, Point{X: 2, Y: 5, Low: 5, High: 5}},
		{[]float64{4, math.NaN(), 1, 2, 3, 5}, Point{X: 2, Y: 3, Low: 2, High: 4}},
		{[]float64{1, 2}, Point{X: 2, Y: 1.5, Low: 1.25, High: 1.75}},
		{[]float64{1, math.Inf(1), math.Inf(1), 0, 2}, Point{X: 2, Y: 2, Low: 1, High: math.Inf(1)}},
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
	if got := labels(1e-16, 10); len(got) < 6 || len(got) > 11 || got[0] != "1e-16" || got[1] != "1e-14" {
		t.Errorf("1e-16 to 10: %v", got)
	}
}

// TestCSV: rows are read as they were written, floats to the bit; columns without anything are left out of a sparse file.
func TestCSV(t *testing.T) {
	type inner struct {
		Exact bool `csv:"exact"`
	}
	type row struct {
		Name  string     `csv:"name"`
		N     int        `csv:"n"`
		Seed  uint64     `csv:"seed"`
		Error float64    `csv:"error"`
		Short float64    `csv:"short,%.2f"`
		Some  *float64   `csv:"some"`
		At    *time.Time `csv:"at"`
		None  string     `csv:"none"`
		inner
		Other int
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rows := []row{
		{Name: "a,b", N: 3, Seed: 7, Error: 1.0 / 3, Short: 0.25, Some: new(2.5), At: &at, inner: inner{Exact: true}},
		{Name: "c", N: -1, Seed: 1, Error: math.Inf(-1), Short: 1},
	}
	for sparse, want := range map[bool]string{
		true: "name,n,seed,error,short,some,at,exact\n\"a,b\",3,7,0.3333333333333333,0.25,2.5,2026-01-02T03:04:05Z,true\n" +
			"c,-1,1,-inf,1.00,,,false\n",
		false: "name,n,seed,error,short,some,at,none,exact\n\"a,b\",3,7,0.3333333333333333,0.25,2.5,2026-01-02T03:04:05Z,,true\n" +
			"c,-1,1,-inf,1.00,,,,false\n",
	} {
		var b bytes.Buffer
		if err := WriteCSV(&b, rows, sparse); err != nil || b.String() != want {
			t.Errorf("got %q, %v, want %q", b.String(), err, want)
		}
		if back, err := ReadCSV[row](&b, "name", "n"); err != nil || !reflect.DeepEqual(back, rows) {
			t.Errorf("read %+v, %v", back, err)
		}
	}
	back, err := ReadCSV[row](strings.NewReader("more,name,short\n1,a,\n"))
	if err != nil || len(back) != 1 || back[0].Name != "a" || !math.IsNaN(back[0].Error) || !math.IsNaN(back[0].Short) {
		t.Errorf("of other columns: %+v, %v", back, err)
	}
	for text, want := range map[string]string{
		"":                   "the head",
		"n\n1\n":             `no column "name"`,
		"name,n\na,1\nb,x\n": `line 3: n: "x" is no number`,
		"name,error\na,NaN":  `line 2: error: "NaN" is no number`,
		"name,at\na,b":       "line 2: at: parsing time",
		"name,n\na":          "line 2",
	} {
		if _, err := ReadCSV[row](strings.NewReader(text), "name"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// drawn holds the parts of a figure that tests read.
type drawn struct {
	Width  string  `xml:"width,attr"`
	View   string  `xml:"viewBox,attr"`
	Groups []group `xml:"g"`
}

type group struct {
	Groups []group `xml:"g"`
	Texts  []struct {
		X     float64 `xml:"x,attr"`
		Y     float64 `xml:"y,attr"`
		Size  string  `xml:"style,attr"`
		Value string  `xml:",chardata"`
	} `xml:"text"`
	Paths []struct {
		D string `xml:"d,attr"`
	} `xml:"path"`
}

// walk calls f for a group and all within.
func (g group) walk(f func(group)) {
	f(g)
	for _, inner := range g.Groups {
		inner.walk(f)
	}
}

// TestLegendsAreWhole: every name of the legend is inside the picture, also in a font a fifth wider
// than the one it was measured in, and stands right of the line that it explains; the font has
// generic substitutes.
func TestLegendsAreWhole(t *testing.T) {
	const long = "learned anew, bond 16"
	l := lines()
	l.Curves[2].Name = long
	s := scatter()
	s.Groups[0].Name = long
	for kind, write := range map[string]func(io.Writer) error{"lines": l.WriteSVG, "scatter": s.WriteSVG} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if all, generic := strings.Count(b.String(), "font-family:"), strings.Count(b.String(),
			"font-family:Liberation Sans,Arial,Helvetica,sans-serif"); all == 0 || all != generic {
			t.Errorf("%s: %d of %d texts have a generic font", kind, generic, all)
		}
		var d drawn
		if err := xml.Unmarshal(b.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		var left, top, width, height float64
		if _, err := fmt.Sscan(d.View, &left, &top, &width, &height); err != nil {
			t.Fatalf("%s: view %q: %v", kind, d.View, err)
		}
		names, lineEnd := 0, 0.0
		for _, g := range d.Groups {
			g.walk(func(g group) {
				for _, text := range g.Texts {
					if text.Value != long {
						continue
					}
					names++
					name := newFigure("", Axis{}, Axis{}).legend.TextStyle
					if end := text.X + 1.2*float64(name.Width(long)); end > width {
						t.Errorf("%s: the name ends at %.0f of %.0f", kind, end, width)
					}
					lineEnd = text.X
				}
			})
		}
		if names != 1 {
			t.Fatalf("%s: %d times in the legend", kind, names)
		}
		for _, g := range d.Groups {
			g.walk(func(g group) {
				for _, path := range g.Paths {
					var x1, y1, x2, y2 float64
					if n, _ := fmt.Sscanf(path.D, "M%f,%fL%f,%f", &x1, &y1, &x2, &y2); n == 4 && x1 < lineEnd && x2 > lineEnd {
						t.Errorf("%s: a line from %.0f to %.0f runs through names at %.0f", kind, x1, x2, lineEnd)
					}
				}
			})
		}
	}
}

// TestBelowTheFloor: a value below the floor is marked and said, and no line goes there; one at the
// floor is a value.
func TestBelowTheFloor(t *testing.T) {
	var with, without bytes.Buffer
	l := Lines{
		Y: Axis{Log: true, Floor: 1e-14},
		Curves: []Curve{{
			Name:   "c",
			Points: []Point{{X: 1, Y: 1, Low: 1, High: 1}, {X: 2, Y: 0}, {X: 3, Y: 1e-2, Low: 1e-2, High: 1e-2}},
		}},
	}
	if err := l.WriteSVG(&with); err != nil {
		t.Fatal(err)
	}
	l.Curves[0].Points[1] = Point{X: 2, Y: 1e-14, Low: 1e-14, High: 1e-14}
	if err := l.WriteSVG(&without); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(with.String(), ">below 1e-14<") || strings.Contains(without.String(), "below") {
		t.Error("what is below the floor is not said, or what is not below it is")
	}
	wide := func(b bytes.Buffer) int { return strings.Count(b.String(), "stroke-width:1.6") }
	if wide(without) <= wide(with) {
		t.Errorf("%d lines with a value below the floor, %d without", wide(with), wide(without))
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		want     []string
	}{
		{0.03, 3.07, []string{"0.5", "1", "1.5", "2", "2.5", "3"}},
		{-0.5, 20.5, []string{"0", "5", "10", "15", "20"}},
		{0.8, 1.1, []string{"0.8", "0.85", "0.9", "0.95", "1", "1.05", "1.1"}},
	} {
		var got []string
		for _, tick := range steps(c.from, c.to) {
			got = append(got, tick.Label)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// TestDotsHaveARowEach: names and groups are there, the same numbers give the same bytes, and NaN has no dot.
func TestDotsHaveARowEach(t *testing.T) {
	d := Dots{Title: "Of things", X: Axis{Label: "size", Log: true, Floor: 1e-6}, Names: []string{"one", "two", "three"},
		Marks: []Mark{{X: 3, Name: "goal"}},
		Groups: []Values{
			{Name: "here", Points: []Point{{Y: 1, Low: 0.5, High: 2}, {Y: math.NaN()}, {Y: 4, Low: 1e-9, High: 8}}},
			{Name: "there", Points: []Point{{Y: 1e-9, Low: 1e-9, High: 1e-9}, {Y: 10, Low: 10, High: 10}, {Y: math.Inf(1)}}},
		}}
	var a, b, without bytes.Buffer
	if err := errors.Join(d.WriteSVG(&a), d.WriteSVG(&b)); err != nil || a.String() != b.String() {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{">one<", ">three<", ">here<", ">there<", ">goal<", ">below 1e-6<", ">Of things<"} {
		if !strings.Contains(a.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	nameRowsApart(t, a.Bytes(), d.Names)
	d.Groups[1].Points[1].Y = math.NaN()
	if err := d.WriteSVG(&without); err != nil || strings.Count(without.String(), "<path") >= strings.Count(a.String(), "<path") {
		t.Errorf("a dot fewer: %v", err)
	}
	for _, log := range []bool{false, true} { // names without a dot, and nothing at all
		if err := (Dots{X: Axis{Log: log}, Names: []string{"one", "two"}}).WriteSVG(&without); err != nil {
			t.Errorf("without dots: %v", err)
		}
		if err := (Dots{X: Axis{Log: log}}).WriteSVG(&without); err != nil {
			t.Errorf("without anything: %v", err)
		}
	}
}

// nameRowsApart: the names of rows stand at the left, each at the height of its row and above the next, and the axis begins right of them
// also in a font a fifth wider than the one they were measured in.
func nameRowsApart(t *testing.T, svg []byte, rows []string) {
	t.Helper()
	var d drawn
	if err := xml.Unmarshal(svg, &d); err != nil {
		t.Fatal(err)
	}
	style := newFigure("", Axis{}, Axis{}).Plot.Y.Tick.Label
	end, heights := 0.0, make([]float64, len(rows))
	for _, g := range d.Groups {
		g.walk(func(g group) {
			for _, text := range g.Texts {
				if k := slices.Index(rows, text.Value); k >= 0 {
					heights[k] = -text.Y // the transform of texts turns the axis
					end = max(end, text.X+1.2*float64(style.Width(text.Value)))
				}
			}
		})
	}
	for k := range heights[1:] {
		if gap := heights[k] - heights[k+1]; gap < float64(style.Font.Size) {
			t.Errorf("%s is %.1f above %s", rows[k], gap, rows[k+1])
		}
	}
	for _, g := range d.Groups {
		g.walk(func(g group) {
			for _, path := range g.Paths {
				var x1, y1, x2, y2 float64
				if n, _ := fmt.Sscanf(path.D, "M%f,%fL%f,%f", &x1, &y1, &x2, &y2); n == 4 && x2-x1 < 100 && x1 < end && x2 > end {
					t.Errorf("%s runs through names that end at %.0f", path.D, end)
				}
			}
		})
	}
}
