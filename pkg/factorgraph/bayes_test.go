package factorgraph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/tensor"
)

func dense(t *testing.T, shape []int, data ...float64) tensor.Tensor {
	t.Helper()
	return &tensor.Dense{Shape: shape, Data: data}
}

func TestUnnormalised(t *testing.T) {
	half := []float64{0.5, 0.5}
	for name, c := range map[string]struct {
		bayes   bool
		factors []Factor
		want    []string // parts of the text; none: no text
	}{
		"markov": {false, []Factor{{Scope: []int{0}, Table: dense(t, []int{2}, 1, 2)}}, nil},
		"right": {true,
			[]Factor{{Scope: []int{0}, Table: dense(t, []int{2}, half...)},
				{Scope: []int{0, 1}, Table: dense(t, []int{2, 3}, 1, 0, 0, 0.2, 0.3, 0.5)}}, nil},
		"six digits": {true, []Factor{{Scope: []int{1}, Table: dense(t, []int{3}, 0.333333, 0.333333, 0.333333)}}, nil},
		"child first": {true, []Factor{{
			Scope: []int{0, 1},
			Table: dense(t, []int{2, 3}, 0.1, 0.2, 0.3, 0.9, 0.8, 0.7),
		}}, nil},
		"a constant 1": {true, []Factor{{Table: dense(t, nil, 1)}}, nil},
		"a constant": {true, []Factor{{Table: dense(t, nil, 3)}}, []string{
			"factor 0 sums to 3, which rounding does not explain: it is kept as it is, and ln Z",
		}},
		"a row": {true, []Factor{{Scope: []int{0}, Table: dense(t, []int{2}, half...)},
			{Scope: []int{0, 1}, Table: dense(t, []int{2, 3}, 1, 0, 0, 0.2, 0.3, 0.4)}},
			[]string{
				"factor 1: the row of x_0 = 1 sums to 0.9, which rounding does not explain:", "it is kept as it is, so that answers weigh",
			}},
		"all rows": {true, []Factor{{Scope: []int{1, 0}, Table: dense(t, []int{3, 2}, 1, 1, 1, 1, 1, 1)},
			{Scope: []int{0}, Table: dense(t, []int{2}, 0.5, 0.4)}},
			[]string{
				"factor 0: the row of x_0 = 0 sums to 3, which rounding does not explain (and 1 more of its 2 rows not to 1):",
				". 1 more table is like it",
			}},
		"no network": {true, []Factor{{Scope: []int{1, 0}, Table: dense(t, []int{3, 2}, 1, 1, 1, 1, 1, 1)}},
			[]string{"factor 0: the row of x_1 = 0 sums to 2, which rounding does not explain (and 2 more of its 3 rows not to 1):"}},
		"turned": {true, []Factor{{Scope: []int{1}, Table: dense(t, []int{3}, 0.5, 0.25, 0.25)},
			{Scope: []int{1, 0}, Table: dense(t, []int{3, 2}, 0.9, 0.3, 0.5, 0.1, 0.7, 0.5)}},
			[]string{"factor 1: the row of x_1 = 0 sums to 1.2, which rounding does not explain (and 2 more of its 3 rows not to 1); " +
				"with its numbers the other way round all rows would sum to 1:"}},
		"turned, the child first": {true, []Factor{{Scope: []int{1}, Table: dense(t, []int{3}, 0.5, 0.25, 0.25)},
			{Scope: []int{0, 1}, Table: dense(t, []int{2, 3}, 0.2, 0.3, 0.5, 0.5, 0.4, 0.1)}},
			[]string{"factor 1: the row of x_1 = 0 sums to 0.7, which rounding does not explain (and 2 more of its 3 rows not to 1); with"}},
	} {
		m := &Model{Domains: []int{2, 3}, Bayes: c.bayes, Factors: c.factors}
		got := m.unnormalisedWarning()
		if (got == "") != (c.want == nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in %q", name, part, got)
			}
		}
	}
}

// TestUnnormalisedByName: errors about a model with names quote those names.
func TestUnnormalisedByName(t *testing.T) {
	m := &Model{Domains: []int{2, 3}, Bayes: true, Names: []string{"smoke", "lung"}, States: [][]string{{"no", "yes"}, nil},
		Factors: []Factor{{Scope: []int{0, 1}, Table: dense(t, []int{2, 3}, 1, 0, 0, 0.2, 0.3, 0.4)}}}
	if got := m.unnormalisedWarning(); !strings.HasPrefix(got, `the table of "lung": the row of "smoke" = "yes" sums to 0.9`) {
		t.Error(got)
	}
}

// TestNodes: the node of each table follows from the scopes of a network, in whichever order a scope has them.
func TestNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 12; n++ {
		for range 20 {
			order := r.Perm(n) // of ancestors
			m := &Model{Domains: slices.Repeat([]int{2}, n), Factors: make([]Factor, n)}
			want := make([]int, n)
			for place, j := range r.Perm(n) {
				scope := []int{order[place]}
				for _, parent := range order[:place] {
					if r.IntN(3) == 0 {
						scope = append(scope, parent)
					}
				}
				r.Shuffle(len(scope), func(a, b int) { scope[a], scope[b] = scope[b], scope[a] })
				m.Factors[j].Scope, want[j] = scope, slices.Index(scope, order[place])
			}
			if got := m.nodes(); !slices.Equal(got, want) {
				lasts := m.lastPositions()
				t.Errorf("%v: nodes at %v, want %v (last %v)", m.Factors, got, want, lasts)
			}
		}
	}
	for name, scopes := range map[string][][]int{
		"two tables of one": {{0}, {0}}, "a circle": {{0, 1, 2}, {0, 1, 2}, {2, 1, 0}}, "a constant": {{0}, {}}, "too few": {{0}, {1}},
	} {
		m := &Model{Domains: []int{2, 2, 2}[:max(len(scopes), 2)]}
		if name == "too few" {
			m.Domains = []int{2, 2, 2}
		}
		for _, scope := range scopes {
			m.Factors = append(m.Factors, Factor{Scope: scope})
		}
		if got := m.nodes(); got != nil {
			t.Errorf("%s: nodes at %v", name, got)
		}
	}
}

// TestSixDigitFilesPass: random tables of up to 200 values, written with six digits after the point and read
// again; an error of a thousandth in one row is found.
func TestSixDigitFilesPass(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []int{2, 3, 10, 200} {
		data := make([]float64, 7*d)
		for row := range 7 {
			sum := 0.0
			for x := range d {
				data[row*d+x] = r.ExpFloat64()
				sum += data[row*d+x]
			}
			for x := range d {
				data[row*d+x], _ = strconv.ParseFloat(fmt.Sprintf("%.6f", data[row*d+x]/sum), 64)
			}
		}
		m := &Model{
			Domains: []int{7, d},
			Bayes:   true,
			Factors: []Factor{{Scope: []int{0, 1}, Table: dense(t, []int{7, d}, data...)}},
		}
		if got := m.unnormalisedWarning(); got != "" {
			t.Errorf("%d values: %s", d, got)
		}
		data[3*d] += 1e-3
		if got := m.unnormalisedWarning(); !strings.Contains(got, "factor 0: the row of x_0 = 3 sums") {
			t.Errorf("%d values: %q", d, got)
		}
	}
}

// TestNamedRow: of the rows of one table the warning names one that rounding does not explain, and says that it is kept, though a row
// before it is only rounded; a table whose digits explain all rows is divided, and its first row is named so. Both with the row's line.
func TestNamedRow(t *testing.T) {
	for name, c := range map[string]struct {
		data  []float64
		lines []int
		want  string
	}{
		"kept": {[]float64{0.33, 0.33, 0.33, 0.2, 0.3, 0.4}, []int{5, 7},
			`factor 1: the row of x_0 = 1 (line 7) sums to 0.9, which rounding does not explain (and 1 more of its 2 rows not to 1): it is kept`},
		"divided": {[]float64{0.33, 0.33, 0.33, 0.2, 0.3, 0.5}, []int{5, 7},
			`factor 1: the row of x_0 = 0 (line 5) sums to 0.99: it was divided by its sum`},
		"without lines": {[]float64{0.33, 0.33, 0.33, 0.2, 0.3, 0.5}, []int{0, 0}, `factor 1 (line 3): the row of x_0 = 0 sums to 0.99: it was`},
	} {
		m := &Model{Domains: []int{2, 3}, Bayes: true, Lines: []int{2, 3}, Factors: []Factor{
			{Scope: []int{0}, Table: dense(t, []int{2}, 0.5, 0.5)}, {Scope: []int{0, 1}, Table: dense(t, []int{2, 3}, c.data...)}}}
		m.SetRowLines(1, c.lines)
		normal, rounding := m.Normalised()
		if got := rounding.Warnings(normal); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRoundedChildFirst: rows of a table whose variable is not the last of its scope are divided by their sums as well.
func TestRoundedChildFirst(t *testing.T) {
	m := &Model{Domains: []int{2, 2}, Bayes: true, Factors: []Factor{{Scope: []int{1}, Table: dense(t, []int{2}, 0.5, 0.5)},
		{Scope: []int{0, 1}, Table: dense(t, []int{2, 2}, 0.33, 0.25, 0.66, 0.75)}}}
	normal, rounding := m.Normalised()
	const want = "factor 1: the row of x_1 = 0 sums to 0.99: it was divided by its sum"
	if got := rounding.Warnings(normal); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q", got)
	}
	got := normal.Factors[1].Table.(*tensor.Dense).Data
	for i, want := range []float64{1. / 3, 0.25, 2. / 3, 0.75} {
		if math.Abs(got[i]-want) > 1e-15 {
			t.Errorf("entry %d: %v, want %v", i, got[i], want)
		}
	}
}
