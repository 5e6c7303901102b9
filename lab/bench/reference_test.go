package bench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToleranceIsHalfAUnitOfThePrintedDigits(t *testing.T) {
	for _, c := range []struct {
		text  string
		value float64
		want  float64
	}{
		{"169.408", 169.408, 5e-4},
		{"376.7166", 376.7166, 5e-5},           // seven digits count as printed
		{"-44.061", -44.061, 5e-5},             // %g dropped the last zero
		{"1311.98", 1311.98, 5e-3},             //
		{"-116.58", -116.58, 5e-4},             // as above
		{"-8.39145", -8.39145, leastTolerance}, // half a unit is 5e-6
		{"33.55537391709", 33.55537391709, leastTolerance},
		{"1.5e+06", 1.5e6, 5}, // 1.50000e+06
		{"1.23456789e3", 1234.56789, leastTolerance},
		{"0", 0, leastTolerance}, // exact
		{"0.00", 0, 5e-3},        // two decimals, no more is known
		{"-inf", math.Inf(-1), leastTolerance},
	} {
		if got := tolerance(c.text, c.value); math.Abs(got-c.want) > 1e-8*c.want {
			t.Errorf("%s: %g, want %g", c.text, got, c.want)
		}
	}
}

func TestToleranceHoldsAgainstPrinting(t *testing.T) {
	// Any number is within the tolerance of its own text by %g.
	for i := range 4000 {
		v := 1000 * math.Sin(float64(i)*1.618) * math.Pow(10, float64(i%7-4))
		text := format(&v, "%.6g")
		printed := parse(t, text)
		if d := math.Abs(printed - v); d > tolerance(text, printed) {
			t.Errorf("%v printed as %s: off by %g, tolerance %g", v, text, d, tolerance(text, printed))
		}
	}
}

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadReference(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.uai.PR": "PR\n-12.345\n", "a.uai.MAR": "MAR\n2 2 0.25 0.75 1 1\n",
		"zero.uai.PR": "PR -inf", "broken.uai.PR": "PR\nmany\n", "mar.uai.MAR": "MAR\n1 2 0.5",
	})
	read := func(name string, mar bool) reference { return readReference(filepath.Join(dir, name), mar) }
	if r := read("a.uai", true); r.Err != nil || *r.Log10Z != -12.345 || math.Abs(r.Tolerance-5e-5) > 1e-12 ||
		r.Marginals[0][1] != 0.75 {
		t.Errorf("got %+v", r)
	}
	if r := read("a.uai.gz", true); r.Err != nil || r.Log10Z == nil || r.Marginals == nil {
		t.Errorf("beside a compressed model: %+v", r)
	}
	if r := read("a.uai", false); r.Marginals != nil {
		t.Error("marginals that nobody asked for")
	}
	if r := read("zero.uai", true); r.Err != nil || !math.IsInf(*r.Log10Z, -1) {
		t.Errorf("got %+v", r)
	}
	if r := read("none.uai", true); r.Err != nil || r.Log10Z != nil || r.Marginals != nil {
		t.Errorf("got %+v", r)
	}
	for name, want := range map[string]string{"broken.uai": "broken.uai.PR", "mar.uai": "mar.uai.MAR"} {
		if r := read(name, true); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %v", name, r.Err)
		}
	}
}

func TestMarError(t *testing.T) {
	want := [][]float64{{0.25, 0.75}, {1}}
	if e, err := marError([][]float64{{0.25, 0.75}, {1}}, want); err != nil || e != 0 {
		t.Errorf("got %g, %v", e, err)
	}
	if e, err := marError([][]float64{{0.5, 0.5}, {1}}, want); err != nil || e != 0.25 {
		t.Errorf("got %g, %v", e, err)
	}
	if e, _ := marError([][]float64{{math.NaN(), 0.75}, {1}}, want); !math.IsNaN(e) {
		t.Errorf("a NaN became %g", e)
	}
	for _, got := range [][][]float64{nil, {{0.25, 0.75}}, {{0.25, 0.5, 0.25}, {1}}} {
		if _, err := marError(got, want); err == nil {
			t.Errorf("%v: no error", got)
		}
	}
}
