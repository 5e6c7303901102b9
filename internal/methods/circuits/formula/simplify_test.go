package formula

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// agree compares a formula with its simplified one: Z and Σ over the assignments with every value
// of a link, under weights.
func agree(t *testing.T, f *Formula, r *Reduced, weights []float64) {
	t.Helper()
	want := enumerate(f, weights)
	fixed := big.NewFloat(1)
	for _, a := range r.FixedAtoms {
		fixed.Mul(fixed, big.NewFloat(weights[a]))
	}
	compound := make([]float64, r.Formula.Atoms())
	for u, list := range r.StandsFor {
		compound[u] = 1
		for _, a := range list {
			compound[u] *= weights[a]
		}
	}
	got := enumerate(r.Formula, compound)
	z := new(big.Float).Mul(got.z, fixed)
	if !near(z, want.z) {
		t.Fatalf("Z is %v, want %v\nof %+v\nleft %+v", z, want.z, *f, *r.Formula)
	}
	for a := range f.FirstAtom(f.Links) {
		sum := new(big.Float)
		if slices.Contains(r.FixedAtoms, int32(a)) {
			sum.Set(z)
		}
		for u, list := range r.StandsFor {
			if slices.Contains(list, int32(a)) {
				sum.Add(sum, new(big.Float).Mul(got.atoms[u], fixed))
			}
		}
		if !near(sum, want.atoms[a]) {
			t.Fatalf("atom %d: %v, want %v\nof %+v\nleft %+v", a, sum, want.atoms[a], *f, *r)
		}
	}
	for i, functional := range r.Formula.Functional {
		if functional && got.unclear[r.Formula.Links+i] {
			t.Fatalf("auxiliary variable %d is said to follow from the links, and does not", i)
		}
	}
}

func simplified(t *testing.T, f *Formula) *Reduced {
	t.Helper()
	r, err := Simplify(context.Background(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// randomClauses draws a formula of links, gates over them that are auxiliary variables, clauses and tables.
func randomClauses(rng *rand.Rand, links int) *Formula {
	f := Formula{Links: links, Scale: scaled.FromFloat(1.5)}
	for range links {
		f.Domains = append(f.Domains, []int{2, 2, 2, 3, 4, 1}[rng.IntN(6)])
	}
	gates := rng.IntN(4)
	for range gates {
		f.Domains = append(f.Domains, 2)
		f.Functional = append(f.Functional, true)
	}
	at, err := New(f)
	if err != nil {
		panic(err)
	}
	literal := func(below int) Literal {
		v := rng.IntN(below)
		l := at.Literal(v, rng.IntN(f.Domains[v]))
		if rng.IntN(2) == 0 {
			l = l.Not()
		}
		return l
	}
	for g := range gates {
		y := at.Literal(links+g, 1)
		all := []Literal{y}
		for range 1 + rng.IntN(3) {
			l := literal(links + g)
			f.Clauses = append(f.Clauses, []Literal{y.Not(), l})
			all = append(all, l.Not())
		}
		f.Clauses = append(f.Clauses, all)
	}
	for range rng.IntN(3 * links) {
		var c []Literal
		for range 2 + rng.IntN(3) {
			c = append(c, literal(len(f.Domains)))
		}
		f.Clauses = append(f.Clauses, c)
	}
	for range rng.IntN(3) {
		v, w := rng.IntN(len(f.Domains)), rng.IntN(len(f.Domains))
		if v == w {
			continue
		}
		values := make([]float64, f.Domains[v]*f.Domains[w])
		for i := range values {
			values[i] = float64(1+rng.IntN(3)) / 2
		}
		f.Tables = append(f.Tables, Table{[]int32{int32(v), int32(w)}, values})
	}
	out, err := New(f)
	if err != nil {
		panic(err)
	}
	return out
}

// TestSimplifiedClauses: formulas of clauses, gates and tables over variables of one to four values.
func TestSimplifiedClauses(t *testing.T) {
	before, after, zero := 0, 0, 0
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 8))
		f := randomClauses(rng, 3+rng.IntN(5))
		r := simplified(t, f)
		agree(t, f, r, randomWeights(rng, f))
		before, after = before+len(f.Domains), after+len(r.Formula.Domains)
		if len(r.Formula.Clauses) > 0 && len(r.Formula.Clauses[0]) == 0 {
			zero++
		}
	}
	if after > before*2/3 || zero == 0 || zero > 700 {
		t.Errorf("%d of %d variables are left, %d formulas without an assignment", after, before, zero)
	}
}

// TestSimplifiedNetworks: formulas of networks of all forms, with chains of auxiliary variables.
func TestSimplifiedNetworks(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 9))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 5, Factors: 6, MaxDomain: 4, MaxArity: 4, MaxStates: 256, Zeros: []float64{0.2, 0.5, 0.7}[rng.IntN(3)],
		})
		list, _ := logical(rng, 7)
		if seed%3 == 0 {
			m = &factorgraph.Model{Domains: slices.Repeat([]int{2}, 8)}
			for _, name := range []string{"parity", "exactly", "max", "or", "noisy-or", "at most"} {
				if rng.IntN(3) > 0 {
					m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(8)[:7], Table: list[name]})
				}
			}
		}
		f, err := FromNetwork(context.Background(), network(t, m, ""), 0)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, f, simplified(t, f), randomWeights(rng, f))
	}
}

// TestWhatSimplificationFinds: one formula for each of the things.
func TestWhatSimplificationFinds(t *testing.T) {
	two := func(n int) []int { return slices.Repeat([]int{2}, n) }
	// a clause by numbers from 1 on, as in DIMACS
	clauses := func(list ...[]int) (out [][]Literal) {
		for _, c := range list {
			var k []Literal
			for _, n := range c {
				l := Literal(2 * (max(n, -n) - 1)) // value 0
				if n > 0 {
					l++ // value 1
				}
				k = append(k, l<<1)
			}
			out = append(out, k)
		}
		return out
	}
	for name, c := range map[string]struct {
		f                        Formula
		variables, clauses, most int // left, and literals in all
	}{
		"units": {Formula{Domains: two(3), Links: 3, Clauses: clauses([]int{1}, []int{-1, 2}, []int{-2, -3})}, 0, 0, 0},
		"equivalence": {Formula{Domains: two(3), Links: 3,
			Clauses: clauses([]int{1, 2}, []int{-1, -2}, []int{2, 3}, []int{-2, -3})}, 1, 0, 0},
		"failed":   {Formula{Domains: two(3), Links: 3, Clauses: clauses([]int{1, 2}, []int{1, 3}, []int{1, -2, -3})}, 2, 0, 0},
		"subsumed": {Formula{Domains: two(4), Links: 4, Clauses: clauses([]int{1, 2}, []int{1, 2, 3}, []int{1, 3, 4})}, 4, 2, 5},
		"strengthened": {Formula{Domains: two(4), Links: 4,
			Clauses: clauses([]int{1, 2, 3}, []int{1, 2, -3, 4}, []int{-1, -2, 3})}, 4, 3, 9},
		"vivified": {Formula{Domains: two(5), Links: 5,
			Clauses: clauses([]int{1, 2, 3, 4}, []int{1, 5}, []int{-5, 2, 3})}, 5, 2, 5},
		"implied": {Formula{Domains: two(4), Links: 4,
			Clauses: clauses([]int{-1, 2}, []int{-2, 3}, []int{-1, 3}, []int{3, 4})}, 4, 3, 6},
		"gate": {Formula{Domains: two(4), Links: 3, Functional: []bool{true},
			Clauses: clauses([]int{-4, 1}, []int{-4, 2}, []int{4, -1, -2}, []int{4, 3})}, 3, 2, 4},
		"no gate": {Formula{Domains: two(4), Links: 3, Functional: []bool{false},
			Clauses: clauses([]int{-4, 1}, []int{-4, 2}, []int{4, 3})}, 4, 3, 6},
		"zero": {Formula{Domains: two(2), Links: 2, Clauses: clauses([]int{1, 2}, []int{-1, 2}, []int{1, -2}, []int{-1, -2})}, 0, 1, 0},
	} {
		c.f.Scale = scaled.One
		if c.f.Functional == nil {
			c.f.Functional = []bool{}
		}
		f, err := New(c.f)
		if err != nil {
			t.Fatal(name, err)
		}
		r := simplified(t, f)
		literals, _, _ := size(r.Formula)
		if len(r.Formula.Domains) != c.variables || len(r.Formula.Clauses) != c.clauses || literals != c.most {
			t.Errorf("%s: %d variables, clauses %v left, want %d, %d with %d literals",
				name, len(r.Formula.Domains), r.Formula.Clauses, c.variables, c.clauses, c.most)
		}
		if name == "no gate" {
			continue // the links do not determine it: the sum over it is checked, marginals are
		}
		agree(t, f, r, randomWeights(rand.New(rand.NewPCG(1, 10)), f))
	}
}

// TestVariablesOfManyValuesAreReplaced: one that is another one in other words, and one of two values that says whether another has one.
func TestVariablesOfManyValuesAreReplaced(t *testing.T) {
	f, err := New(Formula{Domains: []int{4, 3, 2, 2}, Links: 4, Functional: []bool{}, Scale: scaled.One})
	if err != nil {
		t.Fatal(err)
	}
	same := func(l, m Literal) { f.Clauses = append(f.Clauses, []Literal{l.Not(), m}, []Literal{l, m.Not()}) }
	same(f.Literal(0, 2), f.Literal(1, 0))
	same(f.Literal(0, 0), f.Literal(1, 1))
	same(f.Literal(0, 3), f.Literal(1, 2))
	same(f.Literal(0, 3), f.Literal(2, 1))
	f.Clauses = append(f.Clauses, []Literal{f.Literal(0, 0), f.Literal(3, 1)})
	r := simplified(t, f)
	if want := []int{3, 2}; !slices.Equal(r.Formula.Domains, want) {
		t.Errorf("domains %v are left, want %v", r.Formula.Domains, want)
	}
	agree(t, f, r, randomWeights(rand.New(rand.NewPCG(2, 11)), f))
}

// TestExactlyOneOfSeveral: literals of which exactly one holds become one variable; where one pair does not exclude each other they do not.
func TestExactlyOneOfSeveral(t *testing.T) {
	joined := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 44))
		links := 6 + rng.IntN(3)
		f := Formula{Links: links, Domains: slices.Repeat([]int{2}, 10), Functional: slices.Repeat([]bool{false}, 10-links), Scale: scaled.One}
		of := func(v int) Literal { return Literal(2*(2*v+rng.IntN(2))) ^ Literal(rng.IntN(2)) }
		exact := true
		for _, block := range [][]int{{0, 1, 2}, {3, 4, 5, 6}} {
			var c []Literal
			for _, v := range block {
				c = append(c, of(v))
			}
			f.Clauses = append(f.Clauses, c)
			for i, l := range c {
				for _, m := range c[:i] {
					if rng.IntN(20) == 0 {
						exact = false
						continue
					}
					f.Clauses = append(f.Clauses, []Literal{l.Not(), m.Not()})
				}
			}
		}
		for range rng.IntN(5) {
			v := rng.Perm(10)
			f.Clauses = append(f.Clauses, []Literal{of(v[0]), of(v[1]), of(v[2])})
		}
		g, err := New(f)
		if err != nil {
			t.Fatal(err)
		}
		r := simplified(t, g)
		agree(t, g, r, randomWeights(rng, g))
		if exact && slices.Max(append(r.Formula.Domains, 0)) > 2 {
			joined++
		}
	}
	if joined < 100 {
		t.Errorf("%d formulas have a variable of many values", joined)
	}
}

// TestSimplifyEnds: little work finds less and nothing wrong, and a context that has ended is an error.
func TestSimplifyEnds(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 12))
		f := randomClauses(rng, 7)
		r, err := Simplify(context.Background(), f, 1+rng.Int64N(300))
		if err != nil {
			t.Fatal(err)
		}
		agree(t, f, r, randomWeights(rng, f))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Simplify(ctx, randomClauses(rand.New(rand.NewPCG(1, 13)), 7), 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWorkOfSimplify: the steps taken are stated, also where nothing is left.
func TestWorkOfSimplify(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	empty, total := 0, int64(0)
	for range 200 {
		r := simplified(t, randomClauses(rng, 5))
		if len(r.Formula.Domains) == 0 {
			empty++
		}
		if total += r.Work; r.Work < 0 || len(r.Formula.Clauses) > 1 && r.Work == 0 {
			t.Fatalf("%d steps", r.Work)
		}
	}
	if total == 0 || empty == 0 {
		t.Errorf("%d steps in all, nothing left of %d", total, empty)
	}
}

// TestHardBackbone: literals that all assignments have are found though it takes long to find the first assignment.
func TestHardBackbone(t *testing.T) {
	const n = 200
	rng := rand.New(rand.NewPCG(1, 43))
	f := Formula{Domains: slices.Repeat([]int{2}, n), Links: n, Functional: []bool{}, Scale: scaled.One}
	for len(f.Clauses) < 1500 {
		var c []Literal
		holds := false
		for _, v := range rng.Perm(n)[:3] {
			a := rng.IntN(2)
			holds = holds || a == v%2
			c = append(c, Literal(2*v+a)<<1)
		}
		if holds { // where every variable is its number modulo 2
			f.Clauses = append(f.Clauses, c)
		}
	}
	g, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Simplify(t.Context(), g, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, atom := range r.FixedAtoms {
		if int(atom)%2 != int(atom)/2%2 {
			t.Errorf("value %d of variable %d is fixed, an assignment has the other", atom%2, atom/2)
		}
	}
	if len(r.FixedAtoms) < n/2 {
		t.Errorf("%d variables are fixed", len(r.FixedAtoms))
	}
}
