package dimacs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

func read(t *testing.T, text string) *factorgraph.Model {
	t.Helper()
	m, err := Read(strings.NewReader(text), uai.Limits{})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if err := m.Validate(); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return m
}

// TestCountsByHand: the conventions of the formats, each with its weighted count.
func TestCountsByHand(t *testing.T) {
	for text, want := range map[string]float64{
		"p cnf 3 2\n1 2 0\n-1 3 0\n":                      4,
		"c t mc\nc\ncomment\np cnf 3 2\n1 2 0 -1\n3\n0\n": 4,
		"p cnf 2 1\n0\n":                                  0,
		"p cnf 0 0\n":                                     1,
		"p cnf 2 2\n1 1 1 0\n2 -2 0":                      2,
		"c t wmc\np cnf 2 1\nc p weight 1 0.3 0\nc p weight -1 0.8 0\n1 2 0\n": 0.3*2 + 0.8,
		"c p weight -2 0.25 0\np cnf 2 1\nc p weight 1 1/4 0\n1 2 0\n":         0.25 + 0.75*0.75,
		"p cnf 2 1\nw 1 0.25\nw 2 -1\n1 2 0\n":                                 0.25*2 + 0.75,
		"p cnf 2 1\nw 1 0.25 0\nw -1 3 0\n1 2 0\n":                             0.25*2 + 3,
		"p cnf 2 1\nc p weight 1 -2 0\nc p weight -1 1e-3 0\n1 2 0\n":          -4 + 1e-3,
		"p cnf 2 1\r\n1 2 0\r\nc p show 2 1 0\r\n":                             3,
		"p cnf 2 1\nc ind 1 0\nc ind 2 0\n1 2 0\n":                             3,
		"p cnf 2 1\n1 2 0\n%\n0\n":                                             3,
		"p cnf 9 1\n1 -2 3 -4 5 6 7 8 9 0\n":                                   511,
		"p cnf 7 3\nc p weight -4 0 0\n1 -2 3 -4 5 6 7 0\n-1 0 2 0\n":          16 - 1,
		"p cnf 1 0\nc p weight 1 0.5e0 0":                                      1,
		"c p weight 1 2 0 \ncp weight 1 7 0\np cnf 1 0\n  c p weight -1 1 0":   3,
		"p cnf 2 0\nc p weight 1 1.5 0\n":                                      2.5 * 2,
		"p cnf 2 0\nc p weight 1 1.5 0\nc p weight -2 0.25 0\n":                2.5 * 1.25, // they are no probabilities: the others are 1
		"p cnf 2 0\nw 1 3\nw 2 1\n":                                            4 * 2,
		"p cnf 2 0\nw 1 0.25\nw 2 1\n":                                         1,
		"p cnf 1 0\nc p weight -1 -2 0\n":                                      -1,
		"p cnf 2 0\nc p weight -1 -2 0\nc p weight 1 3 0\nw 2 0.5\n":           1,
		"p cnf 1 2\n1 0\n-1 0\n":                                               0,
		"p cnf 2 1\nc p show 1 0\n1 2 0\n":                                     2,
		"c ind 1 0\np cnf 2 1\n1 2 0\n":                                        2,
		"p cnf 3 2\nc p show 0\n1 2 0\n-2 3 0\n":                               1,
		"p cnf 1 2\nc p show 0\n1 0\n-1 0\n":                                   0,
		"p cnf 3 3\nc p show 2 3 0\n1 2 0\n-1 3 0\n-1 -2 0\nw 3 0.25\n":        0.75 + 0.25 + 0.25,
	} {
		m := read(t, text)
		if got, _ := oracle.Z(m, factorgraph.Evidence{}).Float64(); math.Abs(got-want) > 1e-12 {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// count is the weighted count of a formula by trying all assignments.
func count(clauses [][]int, weights [][2]float64) *big.Float {
	sum := new(big.Float)
	for x := range 1 << len(weights) {
		p := big.NewFloat(1)
		for v, w := range weights {
			p.Mul(p, big.NewFloat(w[x>>v&1]))
		}
		holds := true
		for _, c := range clauses {
			some := false
			for _, l := range c {
				some = some || (x>>(max(l, -l)-1)&1 == 1) == (l > 0)
			}
			holds = holds && some
		}
		if holds {
			sum.Add(sum, p)
		}
	}
	return sum
}

// random draws a formula and writes it.
func random(rng *rand.Rand) (text string, clauses [][]int, weights [][2]float64) {
	n := 1 + rng.IntN(10)
	var b strings.Builder
	fmt.Fprintf(&b, "p cnf %d %d\n", n, 8)
	for range 8 {
		var c []int
		for range rng.IntN(12) {
			l := 1 + rng.IntN(n)
			if rng.IntN(2) == 0 {
				l = -l
			}
			c = append(c, l)
		}
		clauses = append(clauses, c)
		for _, l := range c {
			fmt.Fprint(&b, l, []string{" ", "\n", "\t"}[rng.IntN(3)])
		}
		b.WriteString("0\n")
	}
	for v := range n {
		w := [2]float64{1, 1}
		switch rng.IntN(4) {
		case 0:
			w = [2]float64{rng.Float64(), 3 * rng.Float64()}
			fmt.Fprintf(&b, "c p weight %d %v 0\nc p weight %d %v 0\n", -v-1, w[0], v+1, w[1])
		case 1:
			w[0] = rng.Float64()
			w[1] = 1 - w[0]
			fmt.Fprintf(&b, "c p weight %d %v 0\n", -v-1, w[0])
		case 2:
			w[1] = rng.Float64()
			w[0] = 1 - w[1]
			fmt.Fprintf(&b, "w %d %v\n", v+1, w[1])
		}
		weights = append(weights, w)
	}
	return b.String(), clauses, weights
}

// TestRandomFormulas: a read model has the count, and a model written and read again is the same.
func TestRandomFormulas(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		text, clauses, weights := random(rng)
		m := read(t, text)
		got, want := oracle.Z(m, factorgraph.Evidence{}), count(clauses, weights)
		if d, _ := new(big.Float).Sub(got, want).Float64(); math.Abs(d) > 1e-12 {
			t.Fatalf("seed %d: %v, want %v\n%s", seed, got, want, text)
		}
		var out bytes.Buffer
		if err := Write(&out, m); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		back := read(t, out.String())
		if back.Lines = m.Lines; !reflect.DeepEqual(back, m) {
			t.Fatalf("seed %d: %+v, want %+v\n%s", seed, back, m, &out)
		}
	}
}

// TestProjectedCounts: every assignment of the shown variables counts once, with its weight, if the hidden ones have a solution; the model
// has the shown ones alone, under their numbers.
func TestProjectedCounts(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 2 + rng.IntN(9)
		var clauses [][]int
		var text strings.Builder
		fmt.Fprintf(&text, "p cnf %d %d\n", n, 2*n)
		for range 2 * n {
			var c []int
			for range 1 + rng.IntN(4) {
				c = append(c, (1+rng.IntN(n))*(1-2*rng.IntN(2)))
			}
			clauses = append(clauses, c)
			fmt.Fprintf(&text, "%s 0\n", strings.Trim(fmt.Sprint(c), "[]"))
		}
		shown := rng.Perm(n)[:rng.IntN(n)]
		text.WriteString("c p show")
		weights := make([]float64, n)
		for _, v := range shown {
			fmt.Fprintf(&text, " %d", v+1)
		}
		text.WriteString(" 0\n")
		for _, v := range shown {
			weights[v] = float64(1 + rng.IntN(5))
			fmt.Fprintf(&text, "c p weight %d %v 0\nc p weight %d 1 0\n", v+1, weights[v], -v-1)
		}
		counted := map[int]bool{}
		want := 0.0
		for x := range 1 << n {
			key, weight := 0, 1.0
			for _, v := range shown {
				if x>>v&1 == 1 {
					key |= 1 << v
					weight *= weights[v]
				}
			}
			if !counted[key] && solves(clauses, x) {
				counted[key] = true
				want += weight
			}
		}
		m := read(t, text.String())
		slices.Sort(shown)
		for v, name := range m.Names {
			if name != fmt.Sprint(shown[v]+1) {
				t.Fatalf("seed %d: variables %v, shown are %v from 0 on", seed, m.Names, shown)
			}
		}
		if got, _ := oracle.Z(m, factorgraph.Evidence{}).Float64(); len(m.Domains) != len(shown) || math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d: %v, want %v\n%s", seed, got, want, &text)
		}
	}
}

// solves reports whether an assignment, a bit for every variable, meets all clauses.
func solves(clauses [][]int, x int) bool {
	return !slices.ContainsFunc(clauses, func(c []int) bool {
		return !slices.ContainsFunc(c, func(l int) bool { return (x>>(max(l, -l)-1)&1 == 1) == (l > 0) })
	})
}

// TestHardProjection: an elimination that grows beyond its bounds is refused by its word, and ends soon.
func TestHardProjection(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	var text strings.Builder
	text.WriteString("p cnf 300 1000\nc p show 1 2 3 0\n")
	for range 1000 {
		for _, v := range rng.Perm(300)[:3] {
			fmt.Fprintf(&text, "%d ", (v+1)*(1-2*rng.IntN(2)))
		}
		text.WriteString("0\n")
	}
	_, err := Read(strings.NewReader(text.String()), uai.Limits{})
	const want = "line 2: invalid model: projected counting: 3 of 300 variables are shown"
	if fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// TestManyClausesOfOneVariable: clauses that share a hidden variable are as many as the file has; comparing each two of them would reach
// the bound of the work.
func TestManyClausesOfOneVariable(t *testing.T) {
	const clauses = 100_000
	var text strings.Builder
	fmt.Fprintf(&text, "p cnf %d %d\nc p show 2 0\n", clauses+1, clauses)
	for k := range clauses {
		fmt.Fprintf(&text, "1 %d 0\n", k+2)
	}
	m, err := Read(strings.NewReader(text.String()), uai.Limits{})
	if err != nil || len(m.Domains) != 1 || len(m.Factors) != 0 { // every clause holds if 1 does
		t.Errorf("%+v, %v", m, err)
	}
}

// TestMistakesHaveTheirLine: a mistake is reported with its line and its code.
func TestMistakesHaveTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "line 1: syntax error: the file ends without p cnf",
		"1 2 0\n":                        "line 1: syntax error: \"1\" where p cnf",
		"c x\np cnf 2\n":                 "line 2: syntax error: p cnf VARIABLES CLAUSES",
		"p cnf 2 1 1\n":                  "line 1: syntax error: p cnf VARIABLES CLAUSES",
		"p cnf -2 1\n":                   "is no number of variables",
		"p cnf 99999999999999999999 1\n": "over the limit: 99999999999999999999 variables",
		"p cnf 4000000 0\n":              "over the limit: 4000000 variables in a file of 16 bytes",
		"p cnf 1048576 1\n" + strings.Repeat("1 ", 150) + "0\n": "over the limit: 1048576 variables in a file of 318 bytes",
		"p cnf 4115 1\n1 0\n":    "over the limit: 4115 variables in a file of 17 bytes, at most its bytes and 4096",
		"p cnf 2 1\np cnf 2 1\n": "line 2: syntax error: a second line",
		"p wcnf 2 1 10\n":        "unsupported line 1:",
		"p cnf 2 1\n1 3 0\n":     "line 2: invalid model: a literal: 3, there are 2 variables",
		"p cnf 2 1\n1 x 0\n":     "line 2: syntax error: a literal: \"x\" is no integer",
		"p cnf 2 1\n1\n2":        "line 3: syntax error: the file ends within the clause that begins in line 2",
		"p cnf 2 2\n1 2 0\n":     "line 2: invalid model: 1 clauses, the header says 2",
		"p cnf 2 1\n1 0\n2 0\n":  "line 3: invalid model: more clauses than the header says: 1",
		"p cnf 2 1\nx1 2 0\n":    "unsupported line 2: invalid model: clauses that are exclusive",
		"p cnf 2 1\nc p show 1 0\nc p weight 2 3 0\n1 2 0\n": "unsupported line 2: invalid model: projected counting: variable 2 is not shown " +
			"and has the weights 3 and 1",
		"c p show 1 5 0\np cnf 2 0\n":              "line 1: invalid model: a variable that is shown: 5, there are 2",
		"p cnf 2 0\nc p weight 1 0.5\n":            "line 2: syntax error: c p weight LITERAL WEIGHT 0",
		"p cnf 2 0\nc p weight 0 0.5 0\n":          "line 2: invalid model: 0 is no literal",
		"p cnf 2 0\nc p weight 3 0.5 0\n":          "line 2: invalid model: a literal with a weight: 3",
		"c p weight 3 0.5 0\np cnf 2 0\n":          "line 1: invalid model: a literal with a weight: 3",
		"p cnf 2 0\nc p weight 1 half 0\n":         "line 2: syntax error: \"half\" is not a number",
		"p cnf 2 0\nc p weight 1 1e999 0\n":        "line 2: invalid model: the weight \"1e999\" is beyond",
		"p cnf 2 0\nc p weight 1 1e-999 0\n":       "line 2: invalid model: the weight \"1e-999\" is beyond",
		"p cnf 2 0\nc p weight 1 1e-200/1e200 0\n": "line 2: invalid model: the weight \"1e-200/1e200\" is beyond",
		"p cnf 2 0\nc p weight 1 1e-160/1e150 0\n": "line 2: invalid model: the weight \"1e-160/1e150\" is beyond",
		"p cnf 2 0\nc p weight 1 1e200/1e-200 0\n": "line 2: invalid model: the weight \"1e200/1e-200\" is beyond",
		"p cnf 2 0\nc p weight 1 1/0 0\n":          "line 2: invalid model: \"1/0\" is no number",
		"p cnf 2 0\nw 1 .1\nw 2 .1\nw 1 -1\n":      "line 4: invalid model: literal 1 has a weight in line 2 already",
		"p cnf 2 0\nc p gweight 3 0\n":             "unsupported line 2: invalid model: \"c p gweight\" is not read",
		"p cnf 1 1\n" + strings.Repeat("1", 3000):  "line 2: syntax error: a word of more than 2048 characters",
	} {
		_, err := Read(strings.NewReader(text), uai.Limits{})
		code := fault.BadInput
		if rest, ok := strings.CutPrefix(want, "unsupported "); ok {
			code, want = fault.Unsupported, rest
		}
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != code {
			t.Errorf("%.60q: %v (%s), want %q (%s)", text, err, fault.CodeOf(err), want, code)
		}
	}
}

// TestLimits: every limit is one.
func TestLimits(t *testing.T) {
	text := "p cnf 3 2\n1 2 3 0\n-1 -2 0\n"
	for _, l := range []uai.Limits{{Bytes: 10}, {Variables: 2}, {Factors: 1}, {Legs: 4}} {
		if _, err := Read(strings.NewReader(text), l); !errors.Is(err, uai.ErrLimit) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := Read(iotest.ErrReader(io.ErrClosedPipe), uai.Limits{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// TestModelsThatAreNoFormulas: writing refuses them, by factor.
func TestModelsThatAreNoFormulas(t *testing.T) {
	pair := func(data ...float64) factorgraph.Factor {
		return factorgraph.Factor{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: data}}
	}
	parity, err := factorgraph.Parity(2, true)
	if err != nil {
		t.Fatal(err)
	}
	two := func(factors ...factorgraph.Factor) *factorgraph.Model {
		return &factorgraph.Model{Domains: []int{2, 2}, Factors: factors}
	}
	for name, m := range map[string]*factorgraph.Model{
		"variable 1 has 3 values":                       {Domains: []int{2, 3}},
		"factor 0 over the variables [0 1] is neither":  two(pair(1, 0, 0, 1)),
		"factor 1 over the variables [0 1] is neither":  two(pair(1, 0, 1, 1), pair(1, 1, 2, 0)),
		"factor 0 over the variables [0 1] is neither ": two(pair(1, 1, 1, 1)),
		"factor 0 over the variables [1 0] is neither":  two(factorgraph.Factor{Scope: []int{1, 0}, Table: parity}),
	} {
		err := Write(io.Discard, m)
		if err == nil || !strings.Contains(err.Error(), name) || fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRead: a model read from any text is valid, and written and read again it is the same.
func FuzzRead(f *testing.F) {
	for seed := range uint64(5) {
		text, _, _ := random(rand.New(rand.NewPCG(seed, 2)))
		f.Add(text)
	}
	f.Add("p cnf 3 2\nc p show 3 1 0\nw 3 7\n1 2 0\n-2 3 0\n")
	f.Add("c t wmc\np cnf 3 1\nc p weight 1 1/3 0\nc p show 1 2 3 0\n1 -2 3 0\n%\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Read(strings.NewReader(text), uai.Limits{Bytes: 1 << 16, Variables: 1000})
		if err != nil {
			if !strings.Contains(err.Error(), "cnf: line ") {
				t.Fatalf("no line: %v", err)
			}
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Write(&out, m); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&out, uai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		back.Names, back.Lines = m.Names, m.Lines // shown variables are numbered from 1 on in the new file
		if !reflect.DeepEqual(back, m) {
			t.Fatalf("%+v, want %+v", back, m)
		}
	})
}
