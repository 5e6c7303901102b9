package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/basetensor/basetensor/pkg/fault"
)

func parse(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sample() []Row {
	return []Row{
		{
			Set: "exact", Model: "grids/a_b", Variables: 100, Method: "exact", Exact: true, Width: new(13),
			Log2Table: new(14.0), Flops: new(109221.0),
			Bytes: new(107712.0), RealFlops: new(1.5e5), Slices: new(16.0), Wall: 0.25, CPU: 0.5,
			Peak: 40 << 20, Log10Z: new(33.594513654754884),
			Reference: new(33.5945), Error: new(1.3654754884e-05), MarError: new(2e-7), Status: OK,
		},
		{
			Set:       "exact",
			Model:     "zero|x",
			Variables: 2,
			Method:    "exact",
			Exact:     true,
			Wall:      0.125,
			CPU:       0.0625,
			Log10Z:    new(math.Inf(-1)),
			Status:    Unchecked,
		},
		{
			Set:       "exact",
			Model:     "big",
			Wall:      60,
			CPU:       118,
			Peak:      1 << 33,
			Reference: new(0.0),
			Status:    Timeout,
			Note:      `killed, "after" 1m0s`,
		},
	}
}

func TestCSVReadsWhatItWrote(t *testing.T) {
	var b bytes.Buffer
	if err := WriteCSV(&b, sample()); err != nil {
		t.Fatal(err)
	}
	first := b.String()
	rows, err := ReadCSV(&b)
	if err != nil {
		t.Fatal(err)
	}
	if want := sample(); !reflect.DeepEqual(rows, want) {
		t.Errorf("got  %+v\nwant %+v", rows, want)
	}
	if lines := strings.Split(first, "\n"); lines[2] != "exact,zero|x,2,exact,true,,,,,,,0.1250,0.0625,0,-inf,,,,unchecked," {
		t.Errorf("line 2: %s", lines[2])
	}
}

func TestCSVOfOtherVersions(t *testing.T) {
	rows, err := ReadCSV(strings.NewReader("new,status,wall_s,model\n1,ok,2.5,a\n2,timeout,60,b\n"))
	if err != nil || len(rows) != 2 || rows[0].Wall != 2.5 || rows[1].Status != Timeout || rows[0].Model != "a" ||
		rows[0].Log10Z != nil {
		t.Errorf("got %+v, %v", rows, err)
	}
	for text, want := range map[string]string{
		"":                                     "head",
		"model,status\n":                       `no column "wall_s"`,
		"model,status,wall_s\na,ok,quick\n":    `line 2: wall_s: "quick" is no number`,
		"model,status,wall_s\na,ok,1\nb,ok,-1": "line 3: wall_s: -1 is out of range",
		"model,status,wall_s\na,ok,NaN\n":      "is no number",
		"model,status,wall_s\na,ok\n":          "line 2",
	} {
		_, err := ReadCSV(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: %v, want bad input with %q", text, err, want)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	rows := sample()
	table := NewTable([]Model{{Name: "grids/a_b"}, {Name: "a name longer than the column would be"}}, true, false)
	head := table.Head()
	status := utf8.RuneCountInString(head[:strings.Index(head, "status")])
	for _, r := range rows {
		line := []rune(table.Line(r))
		if !strings.HasPrefix(string(line[status:]), string(r.Status)) || line[status-1] != ' ' {
			t.Errorf("not aligned:\n%s\n%s", head, string(line))
		}
	}
	if got := strings.Fields(table.Line(rows[0])); strings.Join(got,
		" ") != "grids/a_b 100 13 14.0 1.1e+05 1.5e+05 16 0.25 0.50 40 1e-05 2e-07 ok" {
		t.Errorf("cells %q", got)
	}
	if !strings.HasSuffix(table.Line(rows[2]), `timeout: killed, "after" 1m0s`) {
		t.Errorf("no reason: %s", table.Line(rows[2]))
	}
	if strings.Contains(NewTable(nil, false, false).Head(), "MAR") {
		t.Error("a column of marginals that nobody asked for")
	}
}

func TestSummary(t *testing.T) {
	if got := Summary(sample()); got != "2 of 3 solved (unchecked 1, timeout 1); 60.4 s, 118.6 s of CPU time" {
		t.Error(got)
	}
	if got := Summary(nil); got != "0 of 0 solved; 0.0 s, 0.0 s of CPU time" {
		t.Error(got)
	}
}

func TestMarkdown(t *testing.T) {
	page := Page{
		Title: "Benchmark: exact", Machine: Machine{
			CPU:        "Quick 9000",
			GOMAXPROCS: 2,
			Memory:     8 << 30,
			Go:         "go1.26",
			Platform:   "linux/amd64",
		},
		Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Command: "btnlab bench FOLDER", Models: 4,
		Data: "results.csv", Picture: "cactus.svg",
		Compared: []Series{{Name: "older", Times: []float64{1}, Total: 3}},
	}
	var b bytes.Buffer
	if err := WriteMarkdown(&b, page, sample()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"# Benchmark: exact\n", "**2 of 3 solved (unchecked 1, timeout 1)", "interrupted: 3 of 4 models",
		"- machine: Quick 9000, GOMAXPROCS 2, 8 GiB of memory, go1.26, linux/amd64\n", "- measured: 2026-01-02\n",
		"- command: `btnlab bench FOLDER`\n", "[results.csv](results.csv)", "](cactus.svg)",
		"- compared with: older, 1 of 3 solved\n",
		"## Not solved\n\n- big: timeout; killed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "## Not solved") != 1 || strings.Contains(text, "Marginal") {
		t.Errorf("got\n%s", text)
	}
	page.Mar, page.Models = true, 3
	b.Reset()
	if err := WriteMarkdown(&b, page, sample()[:1]); err != nil {
		t.Fatal(err)
	}
	if text = b.String(); !strings.Contains(text, "Marginal") || strings.Contains(text, "Not solved") {
		t.Errorf("got\n%s", text)
	}
}

func TestCactusCountsSolvedModels(t *testing.T) {
	rows := append(sample(), Row{Model: "x", Wall: 0.0001, Status: OK},
		Row{Set: "exact", Wall: 0.01, Status: Wrong})
	got := SeriesOf(rows, "file", Wall)
	want := []Series{
		{Name: "exact", Times: []float64{0.125, 0.25}, Total: 4},
		{Name: "file", Times: []float64{0.0001}, Total: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
	corners := [][2]float64{{0.1, 0}, {0.125, 0}, {0.125, 1}, {0.25, 1}, {0.25, 2}, {60, 2}}
	for k, p := range got[0].points(0.1, 60) {
		if [2]float64{p.X, p.Y} != corners[k] || p.Low != p.Y || p.High != p.Y {
			t.Errorf("corner %d is %v", k, p)
		}
	}
	if p := got[1].points(0.0007, 60); p[1].X != leastSeconds {
		t.Errorf("a time below what a logarithmic axis can show: %v", p)
	}
	if l := got[0].label(); l != "exact: 2 of 4 solved" {
		t.Error(l)
	}
}

func TestSVG(t *testing.T) {
	series := []Series{{Name: "exact", Times: []float64{0.11, 0.3, 7}, Total: 5}, {Name: "a < b", Total: 2}}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := WriteSVG(b, "Title", series, Wall, 60); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two drawings of the same differ")
	}
	var words []string
	for d := xml.NewDecoder(&first); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			words = append(words, string(text))
		}
	}
	all := strings.Join(words, "\n")
	for _, want := range []string{
		"Title", "seconds per model", "models solved", "exact: 3 of 5 solved", "a < b: 0 of 2 solved",
		"\n0.1\n", "\n10\n", "\n1\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in the drawing:\n%s", want, all)
		}
	}
	for name, s := range map[string][]Series{
		"nothing":        nil,
		"nothing solved": {{Name: "x", Total: 3}},
		"no time":        {{Name: "x", Times: []float64{0}, Total: 1}},
	} {
		if err := WriteSVG(io.Discard, "", s, Wall, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMachine(t *testing.T) {
	if got := value(strings.NewReader("a\t: 1\nmodel name\t: Quick 9000\nmodel name\t: other\n"),
		"model name"); got != "Quick 9000" {
		t.Errorf("got %q", got)
	}
	if m := ThisMachine(); m.GOMAXPROCS < 1 || !strings.HasPrefix(m.String(), m.CPU) ||
		!strings.Contains(m.String(), m.Go) {
		t.Errorf("got %s", m)
	}
	if got := (Machine{Go: "go1.26", Platform: "a/b",
		GOMAXPROCS: 1}).String(); got != "processor not known, GOMAXPROCS 1, go1.26, a/b" {
		t.Error(got)
	}
}
