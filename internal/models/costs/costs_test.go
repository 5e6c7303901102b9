package costs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/basetensor/basetensor/internal/models/costs"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// hard is the cost of a forbidden combination of values.
var hard = math.Inf(1)

// instance is a file of testdata and its cost, written by hand from the format's definition.
type instance struct {
	file    string
	domains []int
	unit    float64
	sign    float64 // −1 where the largest cost is sought
	cost    func(x []int) float64
}

// look is an entry of a table by the values of its variables, the last one fastest.
func look(list []float64, sizes []int, values ...int) float64 {
	at := 0
	for k, x := range values {
		at = at*sizes[k] + x
	}
	return list[at]
}

var instances = []instance{
	{"queens.wcsp", []int{4, 4, 4, 4}, 1, 1, func(x []int) float64 {
		for i := range x {
			for j := range i {
				if x[i] == x[j] || x[i]-x[j] == i-j || x[j]-x[i] == i-j {
					return hard
				}
			}
		}
		return []float64{3, 0, 3, 3}[x[0]] + []float64{0, 0, 0, 2}[x[1]] + []float64{1, 5, 4, 5}[x[2]]
	}},
	{"colours.wcsp", []int{3, 3, 3, 2, 3}, 1, 1, func(x []int) float64 {
		c := 11.0
		for _, pair := range [][3]int{{0, 1, 7}, {1, 2, 5}, {0, 2, 4}} {
			if x[pair[0]] == x[pair[1]] {
				c += float64(pair[2])
			}
		}
		c += look([]float64{9, 2, 2, 2, 9, 2}, []int{2, 3}, x[3], x[1])
		c += look([]float64{1, 6, 6, 6, 6, 0}, []int{3, 2}, x[4], x[3])
		return c + []float64{2, 0, 2}[x[0]] + []float64{3, 1, 0}[x[4]]
	}},
	{"depots.wcsp", []int{2, 2, 3, 3, 3}, 10, 1, func(x []int) float64 {
		c := []float64{0, 1200}[x[0]] + []float64{0, 900}[x[1]]
		c += look([]float64{hard, 20, 40, 20, 2000, 2000}, []int{3, 2}, x[2], x[0])
		c += look([]float64{75, 75, hard, 10, 75, 75}, []int{3, 2}, x[3], x[1])
		switch [3]int(x[2:]) {
		case [3]int{0, 0, 0}:
			c += 0
		case [3]int{1, 1, 2}:
			c += 5
		case [3]int{2, 2, 2}:
			c += 4000
		default:
			c += 33
		}
		return c + look([]float64{1500, 7, 1500, 900, 1, 3}, []int{3, 2}, x[4], x[0])
	}},
	{"order.wcsp", []int{6, 6, 6, 4}, 1, 1, func(x []int) float64 {
		excess := func(d, most int) float64 {
			if d > most {
				return hard
			}
			return float64(max(d, 0))
		}
		c := excess(x[1]+2-x[0], 3)
		if !(x[1] >= x[2]+1 || x[2] >= x[1]+2) {
			c += 8
		}
		c += excess(max(x[3]+1-x[2], x[2]-x[3]-1), 2)
		c += excess(x[3]+1+1-x[0], 4) // x3 < x0 − 1
		c += excess(x[2]+1-x[0], 9)
		return c + excess(x[3]-x[1], 0)
	}},
	{"tie.wcsp", []int{2, 2, 2}, 1, 1, func(x []int) float64 {
		c := 2 + []float64{9, 3, 1, 3, 3, 2, 3, 0}[4*x[0]+2*x[1]+x[2]]
		if x[0] == 1 && x[2] == 1 {
			return hard
		}
		return c
	}},
	{"share.wcsp", []int{2, 2, 2, 2, 2}, 1, 1, func(x []int) float64 {
		quad := func(a, b, c, d int, others float64) float64 {
			switch [4]int{a, b, c, d} {
			case [4]int{0, 1, 0, 1}:
				return 0
			case [4]int{1, 1, 1, 1}:
				return 9
			}
			return others
		}
		c := 3 + []float64{7, 2}[x[0]] + []float64{7, 2}[x[3]]
		c += quad(x[0], x[1], x[2], x[3], 5) + quad(x[1], x[2], x[3], x[4], 3)
		return c + look([]float64{hard, 1, 0, hard}, []int{2, 2}, x[0], x[4])
	}},
	{"team.cfn", []int{3, 2, 3}, 1, 1, team},
	{"dialect.cfn", []int{3, 2, 3}, 1, 1, team},
	{"largest.cfn", []int{2, 3, 2}, 1, -1, func(x []int) float64 {
		c := -6.5 + []float64{1, 0.5}[x[0]] + look([]float64{-1, 0.5, -hard, -2, 5.5, 2}, []int{2, 3}, x[0], x[1])
		return c + look([]float64{1.5, -3.5, 1.5, 1.5, 1.5, -hard}, []int{2, 3}, x[2], x[1])
	}},
	{"sparse.cfn", []int{3, 2, 3}, 1, 1, func(x []int) float64 {
		c := []float64{0, 0, 1.75}[x[0]]
		switch [3]int(x) {
		case [3]int{0, 0, 1}:
			c += 0.5
		case [3]int{2, 1, 2}:
			c += 0.25
		case [3]int{1, 1, 1}, [3]int{1, 0, 0}:
			c += hard
		default:
			c += 2.125
		}
		if d := x[2] - 1 - x[1]; d > 1 {
			c += hard
		} else {
			c += float64(max(d, 0))
		}
		return c
	}},
	{"shared.cfn", []int{3, 3, 3, 3}, 1, 1, func(x []int) float64 {
		c := []float64{3, 0, 3}[x[2]]
		for _, pair := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}} {
			c += look([]float64{hard, 1, 4, 2, hard, 3, 5, 1, hard}, []int{3, 3}, x[pair[0]], x[pair[1]])
		}
		return c
	}},
	{"nameless.cfn", []int{2, 3, 2}, 1, 1, func(x []int) float64 {
		return look([]float64{1, 2, 3, 3, 2, 0}, []int{2, 3}, x[0], x[1]) + look([]float64{hard, 1, 2, 4}, []int{2, 2}, x[2], x[0])
	}},
}

func team(x []int) float64 {
	c := look([]float64{4.25, 0, 1.5, 6, 2.75, 0.5}, []int{3, 2}, x[0], x[1])
	c += look([]float64{3, 0.25, 7, 1, 9.5, 0, 2, 2, 30}, []int{3, 3}, x[2], x[0])
	return c + []float64{1.75, 0}[x[1]] + []float64{0, 0.5, 3}[x[2]]
}

func reader(file string) func(io.Reader, uai.Limits) (*factorgraph.Model, error) {
	if strings.HasSuffix(file, ".cfn") {
		return costs.ReadCFN
	}
	return costs.ReadWCSP
}

func open(t *testing.T, file string) (*factorgraph.Model, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return reader(file)(bytes.NewReader(text), uai.Limits{})
}

// each gives every assignment to do.
func each(domains []int, do func(x []int)) {
	x := make([]int, len(domains))
	for {
		do(x)
		k := len(x) - 1
		for ; k >= 0; k-- {
			if x[k]++; x[k] < domains[k] {
				break
			}
			x[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// lnWeight is the ln of the product of all factors.
func lnWeight(m *factorgraph.Model, x []int) float64 {
	sum := 0.0
	for _, f := range m.Factors {
		values := make([]int, len(f.Scope))
		for k, v := range f.Scope {
			values[k] = x[v]
		}
		p, _ := oracle.Entry(f.Table, values).Float64()
		sum += math.Log(p)
	}
	return sum
}

// TestEveryAssignmentHasItsCost: the weight of every assignment of every file is e^(−cost/unit).
func TestEveryAssignmentHasItsCost(t *testing.T) {
	for _, i := range instances {
		m, err := open(t, i.file)
		if err != nil {
			t.Errorf("%s: %v", i.file, err)
			continue
		}
		if err := m.Validate(); err != nil || !slices.Equal(m.Domains, i.domains) {
			t.Errorf("%s: %v: %v", i.file, m.Domains, err)
			continue
		}
		each(i.domains, func(x []int) {
			want, got := -i.sign*i.cost(x), i.unit*lnWeight(m, x)
			if !(math.Abs(got-want) < 1e-9*max(1, math.Abs(want))) && got != want {
				t.Fatalf("%s: %v has the cost %v, want %v", i.file, x, -got, -want)
			}
		})
	}
}

// TestExplained: the whole pipeline finds an assignment of the least cost, and its ln weight says the cost.
func TestExplained(t *testing.T) {
	for _, i := range instances {
		m, err := open(t, i.file)
		if err != nil {
			t.Fatal(err)
		}
		best := hard
		each(i.domains, func(x []int) { best = min(best, i.sign*i.cost(x)) })
		results, err := infer.Run(t.Context(), infer.Request{Job: "explained", Model: m, Queries: []query.Query{{MPE: true}}})
		if err != nil || results[0].Status != query.StatusOK || results[0].MPE == nil {
			t.Errorf("%s: %+v, %v", i.file, results, err)
			continue
		}
		found := results[0].MPE
		if got := i.sign * i.cost(found.Assignment); math.Abs(got-best) > 1e-9 || math.Abs(-i.unit*found.LnWeight-best) > 1e-9*max(1, best) {
			t.Errorf("%s: %v with the cost %v, ln weight %v: want %v", i.file, found.Assignment, got, found.LnWeight, best)
		}
	}
}

// TestNames: names of variables and values are kept, in both dialects.
func TestNames(t *testing.T) {
	for _, file := range []string{"team.cfn", "dialect.cfn"} {
		m, err := open(t, file)
		if err != nil {
			t.Fatal(err)
		}
		shifts := []string{"early", "late", "off"}
		if !reflect.DeepEqual(m.Names, []string{"ann", "bob", "cy"}) || !reflect.DeepEqual(m.States, [][]string{shifts, shifts[:2], shifts}) {
			t.Errorf("%s: %v %v", file, m.Names, m.States)
		}
	}
}

// TestRoundTrips: a written model is read with the same names, and entries to nine decimals of their ln.
func TestRoundTrips(t *testing.T) {
	for _, i := range instances {
		m, err := open(t, i.file)
		if err != nil {
			t.Fatal(err)
		}
		back := through(t, m)
		for v, states := range m.States {
			if states != nil && !slices.Equal(back.States[v], states) {
				t.Errorf("%s: values %v became %v", i.file, states, back.States[v])
			}
		}
		if !reflect.DeepEqual(back.Names, m.Names) || !slices.Equal(back.Domains, m.Domains) || len(back.Factors) != len(m.Factors) {
			t.Fatalf("%s: %+v became %+v", i.file, m, back)
		}
		exact := len(costs.Losses(m)) == 0
		for j, f := range m.Factors {
			for k, want := range f.Table.(*tensor.Dense).Data {
				got := back.Factors[j].Table.(*tensor.Dense).Data[k]
				if (want == 0) != (got == 0) || math.Abs(math.Log(got)-math.Log(want)) > 5e-10 || exact && math.Abs(got-want) > 1e-12*want {
					t.Errorf("%s: factor %d, entry %d: %v became %v", i.file, j, k, want, got)
				}
			}
		}
	}
}

func through(t *testing.T, m *factorgraph.Model) *factorgraph.Model {
	t.Helper()
	var b bytes.Buffer
	if err := costs.WriteCFN(&b, m); err != nil {
		t.Fatal(err)
	}
	back, err := costs.ReadCFN(&b, uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestChangedNames: names that the format does not hold are changed, stay distinct, and are counted.
func TestChangedNames(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{3, 2, 2}, Names: []string{"a b", "a_b", "7"},
		States:  [][]string{{"0", "1", "2"}, {"1", "0"}, {"x:y", ""}},
		Factors: []factorgraph.Factor{{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{3}, Data: []float64{0.3, 0, 2}}}}}
	back := through(t, m)
	if !slices.Equal(back.Names, []string{"a_b_2", "a_b", "x_7"}) ||
		!reflect.DeepEqual(back.States, [][]string{nil, {"v_1", "v_0"}, {"x_y", "v_1"}}) {
		t.Errorf("%v %v", back.Names, back.States)
	}
	if lost := costs.Losses(m); len(lost) != 2 || !strings.HasSuffix(lost[0], ": 5") || !strings.Contains(lost[1], "costs of 9 decimals") {
		t.Error(lost)
	}
}

// TestRandomNetworks: files drawn at random, in both formats, have the least cost that trying all assignments finds.
func TestRandomNetworks(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		domains := make([]int, 2+rng.IntN(5))
		for v := range domains {
			domains[v] = 1 + rng.IntN(3)
		}
		var scopes [][]int
		var tables [][]float64
		for range 1 + rng.IntN(8) {
			scope := rng.Perm(len(domains))[:rng.IntN(min(4, len(domains)+1))]
			size := 1
			for _, v := range scope {
				size *= domains[v]
			}
			table := make([]float64, size)
			for i := range table {
				if table[i] = float64(rng.IntN(40)); rng.IntN(8) == 0 {
					table[i] = 500
				}
			}
			scopes, tables = append(scopes, scope), append(tables, table)
		}
		cost := func(x []int) float64 {
			sum := 0.0
			for j, scope := range scopes {
				at := 0
				for _, v := range scope {
					at = at*domains[v] + x[v]
				}
				if sum += tables[j][at]; tables[j][at] == 500 {
					sum = hard
				}
			}
			return sum
		}
		for as, text := range map[string]string{".wcsp": asWCSP(domains, scopes, tables), ".cfn": asCFN(domains, scopes, tables)} {
			m, err := reader(as)(strings.NewReader(text), uai.Limits{})
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			each(domains, func(x []int) {
				if got, want := -lnWeight(m, x), cost(x); !(math.Abs(got-want) < 1e-9) && got != want {
					t.Fatalf("seed %d, %s: %v has the cost %v, want %v\n%s", seed, as, x, got, want, text)
				}
			})
		}
	}
}

// asWCSP writes a network: the default cost is the one of the first combination.
func asWCSP(domains []int, scopes [][]int, tables [][]float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "random %d %d %d 500\n%s\n", len(domains), slices.Max(domains), len(scopes), spaced(domains))
	for j, scope := range scopes {
		var listed strings.Builder
		n := 0
		for i, c := range tables[j] {
			if c == tables[j][0] {
				continue
			}
			n++
			values := make([]int, len(scope))
			for k, rest := len(scope)-1, i; k >= 0; k-- {
				values[k] = rest % domains[scope[k]]
				rest /= domains[scope[k]]
			}
			fmt.Fprintf(&listed, "%s %v\n", spaced(values), c)
		}
		fmt.Fprintf(&b, "%d %s %v %d\n%s", len(scope), spaced(scope), tables[j][0], n, &listed)
	}
	return b.String()
}

// asCFN writes a network without names.
func asCFN(domains []int, scopes [][]int, tables [][]float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{problem: {random, <500}, variables: [%s], functions: {", spaced(domains))
	for j, scope := range scopes {
		fmt.Fprintf(&b, "{scope [%s] costs %v}\n", spaced(scope), tables[j])
	}
	return b.String() + "}}"
}

func spaced(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }

// TestMistakesHaveTheirPlace: a mistake is reported with its line, its function and its code.
func TestMistakesHaveTheirPlace(t *testing.T) {
	for file, want := range map[string]string{
		"global.wcsp":   `unsupported wcsp: line 4: invalid model: cost function 1 is "salldiff", a cost function without a table`,
		"twice.wcsp":    "wcsp: line 5: invalid model: cost function 0: the combination of values at place 1 of its table is there twice",
		"short.wcsp":    "wcsp: line 4: syntax error: the file ends where a value of cost function 0 is needed",
		"scope.wcsp":    "wcsp: line 3: invalid model: cost function 0: variable 2, there are 2",
		"negative.wcsp": "wcsp: line 4: invalid model: a cost of cost function 0 is -3, costs are at least 0",
		"global.cfn":    `unsupported cfn: line 4: invalid model: function "one" is "salldiff", a cost function without a table`,
		"bound.cfn":     `cfn: line 1: syntax error: mustbe is "9": < or > and a number is needed`,
		"value.cfn":     `cfn: line 4: invalid model: function "f": variable a has no value "w"`,
		"length.cfn":    `cfn: line 4: invalid model: function "f": more than 2 costs`,
	} {
		_, err := open(t, file)
		refused(t, file, err, want)
	}
	for text, want := range map[string]string{
		"":                                       "the file ends where the problem's name is needed",
		"a 1":                                    "the file ends where the largest number of values is needed",
		"a 1 x 1 1":                              `the largest number of values: "x" is no integer`,
		"a 9999999999 2 1 1":                     "over the limit: 9999999999 variables",
		"a 1 2 1 1 0":                            "variable 0 has 0 values",
		"a 1 2 1 9 9999999":                      "over the limit: variable 0 has 9999999 values",
		"a 1 2 1 9 2 1 0 x 1":                    `the default cost of cost function 0: "x" is not a number`,
		"a 1 2 1 9 2 1 0 -2 1":                   "the default cost of cost function 0 is -2",
		"a 1 2 1 9 2 1 0 0 1 2 0":                "a value of cost function 0: 2 of variable 0 of its scope, which has 2",
		"a 2 2 1 9 2 2 2 0 0 0 0":                "cost function 0: variable 0 is twice in the scope",
		"a 2 2 1 9 2 2 3 0 1 0 0 0":              "3 variables in the scope, there are 2",
		"a 1 2 1 9 2 1 0 0 -1":                   "shared cost function -1, there are 0 by now",
		"a 1 2 1 9 2 1 0 0 -9223372036854775808": "shared cost function -9223372036854775808, there are 0 by now",
		"a 1 2 1 9 2 -9223372036854775808 0 0 0": "-9223372036854775808 variables in the scope, there are 1",
		"a 2 2 2 1e30 2 2 1 0 0 1 0 5 1 0 0 1 1 1e19":    "costs of 5 and of 1e+19 need more digits together than a float64 has",
		"a 2 2 2 9 2 3 -1 0 0 0 1 1 0 -1":                "its variables have [3] values, shared cost function 1 has [2]",
		"a 1 2 0 9 2 7":                                  `"7" after the last of 0 cost functions`,
		"a 3 9 1 9 9000 9000 9 2 0 1 0 0":                "its table needs 81000000 entries",
		"a 3 2 1 9 2 2 2 3 0 1 2 -1 >= 0 0":              ">= is of two variables, not of 3",
		"a 2 2 1 9 2 2 2 0 1 -1 sdisj 0 0":               `unsupported wcsp: line 1: invalid model: cost function 0 is "sdisj"`,
		"a 1 2 1 9 2 1 0 1e-400 0":                       "is beyond the range of float64",
		"a 1 2 1 9 2 1 0 0 2 0 1 0 1":                    "is there twice",
		"a 1 2 1 9 2 1 0 inf 0":                          `"inf" is not finite`,
		"a 2 1048576 0 9 1048576 1048576":                "the variables have 2097152 values together",
		"a 1 2 1 9 2 1 0 0 " + strings.Repeat("1", 3000): "a word of more than 2048 characters",
	} {
		_, err := costs.ReadWCSP(strings.NewReader(text), uai.Limits{})
		refused(t, text, err, want)
	}
	head := "{problem: {p, <9}, variables: {a: [u v], b: 2}, functions: {"
	for text, want := range map[string]string{
		"":                        "the file ends where the brace or bracket of the problem is needed",
		"{problem: {p, <x}":       `mustbe: "x" is not a number`,
		"{problem: {p, <9, more}": `"more" where the end of problem is needed`,
		"{problem: {p, <9}, variables: {a: 2, a: 2}":                                   `variable "a" is there twice`,
		"{problem: {p, <9}, variables: {a: [u u]}":                                     `value "u" is there twice`,
		"{problem: {p, <9}, variables: {a: [1 2]}":                                     `a value is called "1"`,
		"{problem: {p, <9}, variables: {a: 0}":                                         "variable a has 0 values",
		"{problem: {p, <9}, variables: {a: []}":                                        "variable a has 0 values",
		"{problem: {p, <9}, variables: {a: 2":                                          "the file ends where the end of variables is needed",
		"{problem: {p, \"<9}, variables: {a: 2":                                        "a quote without end",
		head + "f: {scope: [c] costs: [1 2]}":                                          `function "f": there is no variable "c"`,
		head + "f: {scope: [a a] costs: [1 2 3 4]}":                                    `function "f": variable a is twice in the scope`,
		head + "f: {scope: [a] costs: [1]}":                                            `function "f": 1 costs, its scope needs 2`,
		head + "f: {scope: [a] costs: g}}}":                                            `shares the costs of "g"`,
		head + "f: {scope: [a] costs: g} g: {[] costs [1]}}}":                          "its variables have [2] values",
		head + "f: {scope: [a] defaultcost: 1 costs: g}":                               `unsupported cfn: line 1: invalid model: function "f"`,
		head + "f: {scope: [a] defaultcost: 1 costs: [u 1 u 2]}":                       "is there twice",
		head + "f: {scope: [a] costs: [-inf 2]}":                                       "a cost of function \"f\" is -inf, better than anything",
		head + "f: {scope: [a] costs: [+-inf 2]}":                                      `"+-inf" is not a number`,
		"{problem: {p, >1}, variables: {a: 2}, functions: {f: {[a] costs: [1 +inf]}}}": "is +inf, better than anything",
		head + "f: {scope: [a] defaultcost: 1 costs: [u 1 v]}":                         `"]" where a cost of function "f" is needed`,
		head + "f: {scope: [a b] type: >= params: [1]}}}":                              ">= has 2 parameters, not 1",
		head + "f: {scope: [a b] type: >= params: [1 2 3 4]}}}":                        "the end of the parameters",
		head + "f: {scope: [a] values: [1]}}}":                                         "costs, defaultcost or type",
		head + "f: {scope: [a] costs: [1 2]}}} x":                                      `"x" where the end of the file is needed`,
		head + "f: {scope: [a] costs: [1 " + strings.Repeat("2", 3000):                 "a word of more than 2048 characters",
	} {
		_, err := costs.ReadCFN(strings.NewReader(text), uai.Limits{})
		refused(t, text, err, want)
	}
}

func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	code := fault.BadInput
	if rest, ok := strings.CutPrefix(want, "unsupported "); ok {
		code, want = fault.Unsupported, rest
	}
	if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != code || !strings.Contains(err.Error(), ": line ") {
		t.Errorf("%.80q: %v (%s), want %q (%s)", what, err, fault.CodeOf(err), want, code)
	}
}

// TestNoBound: a problem may have none.
func TestNoBound(t *testing.T) {
	const text = "{problem: {p, >-inf}, variables: {a: 3}, functions: {f: {[a] costs: [1 -600 inf]} g: {[a] costs: [0 0 -inf]}}}"
	m, err := costs.ReadCFN(strings.NewReader(text), uai.Limits{})
	if err != nil || !slices.Equal(m.Factors[0].Table.(*tensor.Dense).Data, []float64{math.E, math.Exp(-600), 0}) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestLimits: every limit is one.
func TestLimits(t *testing.T) {
	for _, file := range []string{"colours.wcsp", "team.cfn"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []uai.Limits{{Bytes: 50}, {Variables: 2}, {Domain: 2}, {Legs: 3}, {Entries: 10}} {
			if _, err := reader(file)(bytes.NewReader(text), l); !errors.Is(err, uai.ErrLimit) {
				t.Errorf("%s, %+v: %v", file, l, err)
			}
		}
		if _, err := reader(file)(iotest.ErrReader(io.ErrClosedPipe), uai.Limits{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: a reader that fails: %v", file, err)
		}
	}
}

// TestNoCosts: a negative entry has no cost.
func TestNoCosts(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2}, Factors: []factorgraph.Factor{
		{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, -1}}}}}
	err := costs.WriteCFN(io.Discard, m)
	if fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "factor 0: entry 1 is -1") {
		t.Error(err)
	}
}

// fuzz holds a reader against properties of every text: an error has a code and a line, a model is valid and comes back from a CFN file.
func fuzz(f *testing.F, ending string) {
	files, err := filepath.Glob(filepath.Join("testdata", "*"+ending))
	if err != nil || len(files) < 10 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := reader(ending)(strings.NewReader(text), uai.Limits{Bytes: 1 << 14, Entries: 1 << 12, Variables: 1000})
		if err != nil {
			if code := fault.CodeOf(err); code != fault.BadInput && code != fault.Unsupported || !strings.Contains(err.Error(), ": line ") {
				t.Fatalf("code %s: %v", code, err)
			}
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		back := through(t, m)
		if !slices.Equal(back.Domains, m.Domains) || len(back.Factors) != len(m.Factors) {
			t.Fatalf("%+v became %+v", m, back)
		}
	})
}

func FuzzReadWCSP(f *testing.F) { fuzz(f, ".wcsp") }
func FuzzReadCFN(f *testing.F)  { fuzz(f, ".cfn") }

// TestLatin1: a name that is not in UTF-8 is in Latin-1, beside others that are.
func TestLatin1(t *testing.T) {
	text := `{"problem":{"name":"p","mustbe":"<9"},"variables":{"caf` + "\xe9" + `":["x","y"],"thé":["x","y"]},"functions":{}}`
	m, err := costs.ReadCFN(strings.NewReader(text), uai.Limits{})
	if err != nil || !slices.Equal(m.Names, []string{"café", "thé"}) {
		t.Errorf("%v, %v", m, err)
	}
}
