package factorgraph

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestNormalised: rows that miss 1 by the rounding of their digits are divided by their sums, all others keep their bits.
func TestNormalised(t *testing.T) {
	const same = math.MaxFloat64 // the table stays the one it is
	for name, c := range map[string]struct {
		data    []float64
		first   float64 // of the normalised table
		warning string  // a part of it, empty for none
	}{
		"exact":            {[]float64{0.25, 0.75, 0.5, 0.5}, same, ""},
		"exact to float64": {[]float64{0.1, 0.9, 1 - 0x1p-53, 0x1p-54}, same, ""},
		"six digits":       {[]float64{0.333333, 0.666666, 0.5, 0.5}, 0.333333 / 0.999999, ""},
		"single precision": {[]float64{0.3333333432674408, 0.6666666865348816, 0.5, 0.5}, 0.3333333432674408 / 1.0000000298023224, ""},
		"three digits": {
			[]float64{0.333, 0.666, 0.5, 0.5}, 0.333 / 0.999,
			`the table of "b": the row of "a" = 0 sums to 0.999: it was divided by its sum, because`,
		},
		"two digits, two rows": {
			[]float64{0.33, 0.66, 0.66, 0.35}, 0.33 / 0.99,
			"because the rounding of its digits explains that. So was 1 more row; the sums miss 1 by up to 0.01",
		},
		"one digit":          {[]float64{0.5, 0.4, 0.5, 0.5}, same, ""},
		"more digits than 1": {[]float64{0.333, 0.6, 0.5, 0.5}, same, ""},
		"weights":            {[]float64{2, 3, 0.5, 0.5}, same, ""},
		"another mode":       {[]float64{0.49, 0.5, 0.51, 0.5}, same, ""},
	} {
		table := &tensor.Dense{Shape: []int{2, 2}, Data: c.data}
		before := slices.Clone(c.data)
		m := &Model{Bayes: true, Domains: []int{2, 2}, Names: []string{"a", "b"}, Factors: []Factor{{Scope: []int{0, 1}, Table: table}}}
		normal, rounding := m.Normalised()
		warning := rounding.warning()
		if !slices.Equal(before, c.data) {
			t.Errorf("%s: the model has changed", name)
		}
		if c.first == same && (normal != m || warning != "") {
			t.Errorf("%s: %v, %s", name, normal.Factors[0].Table, warning)
		}
		if c.first == same {
			continue
		}
		got := normal.Factors[0].Table.(*tensor.Dense).Data
		if math.Abs(got[0]-c.first) > 1e-15 || math.Abs(got[0]+got[1]-1) > 0x1p-52 {
			t.Errorf("%s: %v", name, got)
		}
		if rounding.Rows == 0 || rounding.Furthest == 0 {
			t.Errorf("%s: %+v", name, rounding)
		}
		if !strings.Contains(warning, c.warning) || (warning == "") != (c.warning == "") {
			t.Errorf("%s: warning %q", name, warning)
		}
		if again, _ := normal.Normalised(); again != normal {
			t.Errorf("%s: normalised twice", name)
		}
		m.Bayes = false
		if normal, _ := m.Normalised(); normal != m {
			t.Errorf("%s: normalised without being called a Bayesian network", name)
		}
	}
}

// TestDirectedOfPrintedTables: random tables of up to 200 values, written with 3 to 17 digits and read again, are conditional probability
// tables once they are normalised. An error of a tenth in one row is none of rounding.
func TestDirectedOfPrintedTables(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, d := range []int{2, 3, 10, 200} {
		for digits := 3; digits <= 17; digits++ {
			data := make([]float64, 7*d)
			for row := range 7 {
				sum := 0.0
				for x := range d {
					data[row*d+x] = r.ExpFloat64()
					sum += data[row*d+x]
				}
				for x := range d {
					data[row*d+x], _ = strconv.ParseFloat(strconv.FormatFloat(data[row*d+x]/sum, 'f', digits, 64), 64)
				}
			}
			m := &Model{Bayes: true, Domains: []int{7, d}, Factors: []Factor{
				{Scope: []int{0}, Table: dense(t, []int{7}, 1, 0, 0, 0, 0, 0, 0)}, {Scope: []int{0, 1}, Table: dense(t, []int{7, d}, data...)}}}
			if normal, _ := m.Normalised(); !normal.Directed() {
				t.Errorf("%d values of %d digits: not directed", d, digits)
			}
			data[3*d] += 0.1
			if normal, _ := m.Normalised(); normal.Directed() {
				t.Errorf("%d values of %d digits: directed in spite of a wrong row", d, digits)
			}
		}
	}
}

// TestDirected looks at forms, scopes and circles.
func TestDirected(t *testing.T) {
	half := func(shape ...int) tensor.Tensor {
		return dense(t, shape, slices.Repeat([]float64{0.5}, 1<<len(shape))...)
	}
	noisy, err := NoisyOr(0.1, 0.3, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	cells := func(fourth float64) tensor.Tensor { // P(2 = 1 | 0, 1) is 1 where 0 and 1 are equal; fourth is the weight of their being 1, 1
		return &tensor.CP{Shape: []int{2, 2, 2}, Weights: []float64{1, 1, 1, fourth}, Vectors: [][]float64{
			{1, 0, 1, 0, 0, 1, 0, 1}, {1, 0, 0, 1, 1, 0, 0, 1}, {0, 1, 1, 0, 1, 0, 0, 1}}}
	}
	root := func(v int) Factor { return Factor{Scope: []int{v}, Table: half(2)} }
	for name, c := range map[string]struct {
		want    bool
		factors []Factor
	}{
		"a chain":      {true, []Factor{{Scope: []int{1, 2}, Table: half(2, 2)}, root(0), {Scope: []int{0, 1}, Table: half(2, 2)}}},
		"noisy-or":     {true, []Factor{root(0), root(1), {Scope: []int{0, 1, 2}, Table: noisy}}},
		"a function":   {true, []Factor{root(0), root(1), {Scope: []int{0, 1, 2}, Table: cells(1)}}},
		"half of one":  {false, []Factor{root(0), root(1), {Scope: []int{0, 1, 2}, Table: cells(0.5)}}},
		"a clause":     {false, []Factor{root(0), root(1), {Scope: []int{0, 1, 2}, Table: Clause(true, true, true)}}},
		"two tables":   {false, []Factor{root(0), root(0), {Scope: []int{0, 1}, Table: half(2, 2)}}},
		"too few":      {false, []Factor{root(0), {Scope: []int{0, 1}, Table: half(2, 2)}}},
		"a circle":     {false, []Factor{root(0), {Scope: []int{2, 1}, Table: half(2, 2)}, {Scope: []int{1, 2}, Table: half(2, 2)}}},
		"a number":     {false, []Factor{root(0), root(1), root(2), {Table: dense(t, nil, 1)}}},
		"child first":  {false, []Factor{root(1), root(2), {Scope: []int{0, 1}, Table: dense(t, []int{2, 2}, 0.2, 0.3, 0.8, 0.7)}}},
		"a wrong root": {false, []Factor{root(0), root(1), {Scope: []int{2}, Table: dense(t, []int{2}, 0.5, 0.6)}}},
	} {
		m := &Model{Bayes: true, Domains: []int{2, 2, 2}, Factors: c.factors}
		if err := m.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Directed() != c.want {
			t.Errorf("%s: directed is %t", name, !c.want)
		}
		m.Bayes = false
		if m.Directed() {
			t.Errorf("%s: directed without being called a Bayesian network", name)
		}
	}
}
