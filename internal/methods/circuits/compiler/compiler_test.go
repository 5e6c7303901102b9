package compiler

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// random draws a formula of a few variables with clauses, tables and weights; some weights are 0.
func random(t testing.TB, r *rand.Rand, vars int) (*formula.Formula, []scaled.Number) {
	t.Helper()
	f := formula.Formula{Links: vars, Scale: scaled.FromFloat(1 + r.Float64())}
	offsets, atoms := make([]int, vars), 0
	for v := range vars {
		d := 2
		if r.IntN(3) == 0 {
			d = 1 + r.IntN(4)
		}
		f.Domains = append(f.Domains, d)
		offsets[v] = atoms
		atoms += d
	}
	for range r.IntN(3 * vars) {
		var c []formula.Literal
		for _, v := range r.Perm(vars)[:1+min(1+r.IntN(4), vars-1)] {
			l := formula.Literal(2 * (offsets[v] + r.IntN(f.Domains[v])))
			if r.IntN(2) == 0 {
				l = l.Not()
			}
			c = append(c, l)
		}
		f.Clauses = append(f.Clauses, c)
	}
	for range r.IntN(vars) {
		var table formula.Table
		cells := 1
		for _, v := range r.Perm(vars)[:1+r.IntN(min(3, vars))] {
			table.Scope = append(table.Scope, int32(v))
			cells *= f.Domains[v]
		}
		for range cells { // few different entries, so that slices repeat
			table.Values = append(table.Values, float64(1+r.IntN(3)))
		}
		f.Tables = append(f.Tables, table)
	}
	weights := make([]scaled.Number, atoms)
	for i := range weights {
		if r.IntN(20) > 0 {
			weights[i] = scaled.FromFloat(0.1 + r.Float64())
		}
	}
	out, err := formula.New(f)
	if err != nil {
		t.Fatal(err)
	}
	return out, weights
}

// digits are the bits of the numbers that enumerate adds up.
const digits = 256

func wide(x float64) *big.Float { return big.NewFloat(x).SetPrec(digits) }

// enumerate sums a formula over all assignments with 256 bits.
func enumerate(f *formula.Formula, weights []scaled.Number) *big.Float {
	sum := wide(0)
	x := make([]int, len(f.Domains))
	for {
		if term := termAt(f, weights, x); term != nil {
			sum.Add(sum, term)
		}
		v := len(x) - 1
		for ; v >= 0; v-- {
			if x[v]++; x[v] < f.Domains[v] {
				break
			}
			x[v] = 0
		}
		if v < 0 {
			return sum.Mul(sum, wide(f.Scale.Float64()))
		}
	}
}

// termAt returns the term of one assignment, nil if a clause does not hold.
func termAt(f *formula.Formula, weights []scaled.Number, x []int) *big.Float {
	taken := map[int]bool{}
	term := wide(1)
	for v, a := range x {
		taken[f.FirstAtom(v)+a] = true
		term.Mul(term, wide(weights[f.FirstAtom(v)+a].Float64()))
	}
	for _, c := range f.Clauses {
		holds := false
		for _, l := range c {
			holds = holds || taken[l.Atom()] != l.IsNegative()
		}
		if !holds {
			return nil
		}
	}
	for _, t := range f.Tables {
		at := 0
		for _, v := range t.Scope {
			at = at*f.Domains[v] + x[v]
		}
		term.Mul(term, wide(t.Values[at]))
	}
	return term
}

// agree compares a sum with the exact one.
func agree(t *testing.T, what string, got scaled.Number, want *big.Float) {
	t.Helper()
	exact, _ := want.Float64()
	if math.Abs(got.Float64()-exact) > 1e-13*exact {
		t.Errorf("%s: Z = %v, enumeration gives %v", what, got.Float64(), exact)
	}
}

func TestAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	zeros, eliminated := 0, int64(0)
	for i := range 2000 {
		f, weights := random(t, r, 1+r.IntN(8))
		want := enumerate(f, weights)
		if want.Sign() == 0 {
			zeros++
		}
		for _, cells := range []int{-1, 8, 1 << 20} {
			got, err := Compile(context.Background(), f, Options{Weights: weights, cells: cells})
			if err != nil {
				t.Fatal(err)
			}
			eliminated += got.Stats.Dense
			if agree(t, "formula", got.Z, want); t.Failed() {
				t.Fatalf("formula %d, tables of %d entries: %+v", i, cells, f)
			}
		}
	}
	if eliminated < 1000 {
		t.Errorf("%d components were eliminated", eliminated)
	}
	if zeros < 100 || zeros > 1900 {
		t.Errorf("%d of 2000 formulas are 0: too few of one kind", zeros)
	}
}

// hard draws clauses of three literals near the threshold of satisfiability: many conflicts.
func hard(t testing.TB, r *rand.Rand, vars int, ratio float64) *formula.Formula {
	f := formula.Formula{Links: vars, Scale: scaled.One}
	for range vars {
		f.Domains = append(f.Domains, 2)
	}
	for range int(ratio * float64(vars)) {
		var c []formula.Literal
		for _, v := range r.Perm(vars)[:3] {
			c = append(c, formula.Literal(4*v+2*r.IntN(2)))
		}
		f.Clauses = append(f.Clauses, c)
	}
	out, err := formula.New(f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestConflictsAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	conflicts := int64(0)
	for range 30 {
		f := hard(t, r, 12, 3+2*r.Float64())
		weights := make([]scaled.Number, f.Atoms())
		for i := range weights {
			weights[i] = scaled.FromFloat(r.Float64())
		}
		got, err := Compile(context.Background(), f, Options{Weights: weights, cells: -1})
		if err != nil {
			t.Fatal(err)
		}
		conflicts += got.Stats.Conflicts
		agree(t, "hard formula", got.Z, enumerate(f, weights))
	}
	if conflicts == 0 {
		t.Error("no formula had a conflict")
	}
}

// TestForgetting: a search that drops most learned clauses gives the same sum.
func TestForgetting(t *testing.T) {
	s := searchHard(t, func(s *search) { s.solver.LearnedLimit = 8 })
	if s.stats.Learned < 100 || int64(s.stats.Kept) > s.stats.Learned/2 || s.solver.LearnedLimit == 8 {
		t.Errorf("%+v: little is forgotten", s.stats)
	}
}

// TestLearnedBytes: a search whose learned clauses have room for few of them gives the same sum.
func TestLearnedBytes(t *testing.T) {
	s := searchHard(t, func(s *search) { s.solver.LearnedBytesLimit = 4096 })
	if size := s.solver.LearnedBytes; s.stats.Learned < 200 || size > 2*s.solver.LearnedBytesLimit {
		t.Errorf("%+v: learned clauses take %d bytes", s.stats, size)
	}
}

// searchHard searches a hard formula with a search that was changed, and compares its sum with the
// unchanged search's.
func searchHard(t *testing.T, change func(*search)) *search {
	t.Helper()
	f := hard(t, rand.New(rand.NewPCG(15, 16)), 60, 3.6)
	want, err := Compile(context.Background(), f, Options{cells: -1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := encode(f, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	s, ok, err := prepare(context.Background(), p, Options{Memory: defaultMemory, cells: -1})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	change(s)
	got, err := s.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.number.Div(want.Z).Float64()-1) > 1e-12 {
		t.Errorf("Z = %v of the changed search, %v otherwise", got.number, want.Z)
	}
	return s
}

// TestNumbersOfDigests: the same formula draws the same numbers, another one has others.
func TestNumbersOfDigests(t *testing.T) {
	first := func(seed uint64) digest {
		p, err := encode(hard(t, rand.New(rand.NewPCG(seed, 1)), 10, 2), nil, true)
		if err != nil {
			t.Fatal(err)
		}
		return newDrawer(p, p.clauses).draw()
	}
	one, again, other := first(1), first(1), first(2)
	if one != again || one == other {
		t.Errorf("the numbers are %x and %x, of another formula %x", one, again, other)
	}
}

func TestBudgets(t *testing.T) {
	f := hard(t, rand.New(rand.NewPCG(5, 6)), 150, 2)
	if _, err := Compile(context.Background(), f, Options{Work: 10000, cells: -1}); fault.CodeOf(err) != fault.OverBudget ||
		!errors.Is(err, ErrBudget) {
		t.Errorf("little work: %v", err)
	}
	if _, err := Compile(context.Background(), f, Options{Memory: 10000}); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("little memory: %v", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Compile(ctx, f, Options{cells: -1}); fault.CodeOf(err) != fault.Deadline {
		t.Errorf("deadline: %v", err)
	}
}

// TestSearchesThatLead: a search goes on after its work for half of what another way takes, and to four times as much where less is left of
// it, by what is done, than that takes.
func TestSearchesThatLead(t *testing.T) {
	for _, c := range []struct {
		work         int64
		progress     float64
		rival, cells float64
		leads        bool
	}{
		{150, 0, 400, math.Inf(1), true},
		{150, 0, 200, math.Inf(1), false},
		{150, 0, math.Inf(1), 200 * policy.StepCells, false},
		{250, 0.5, 400, math.Inf(1), true},
		{250, 0.1, 400, math.Inf(1), false},
		{399, 0.9, 200, math.Inf(1), true},
		{401, 0.9, 200, math.Inf(1), false},
	} {
		b := budget{work: 100, progress: c.progress, cells: c.cells}
		if b.isFasterThanRival(c.work) {
			t.Errorf("%+v: leads without another way", c)
		}
		b.askRival = func() float64 { return c.rival }
		if got := b.isFasterThanRival(c.work); got != c.leads {
			t.Errorf("%+v: leads %v", c, got)
		}
	}
	wide := hard(t, rand.New(rand.NewPCG(5, 6)), 40, 2)
	asked := 0
	o := Options{Work: 1000, cells: -1, Rival: func() float64 { asked++; return math.Inf(1) }}
	if _, err := Compile(context.Background(), wide, o); err != nil && !errors.Is(err, ErrBudget) || asked != 1 {
		t.Errorf("asked %d times for the other way: %v", asked, err)
	}
}

// TestSmallCache: eviction changes the work and no bit of the answer's first 40.
func TestSmallCache(t *testing.T) {
	f := hard(t, rand.New(rand.NewPCG(7, 8)), 60, 2)
	all, err := Compile(context.Background(), f, Options{cells: -1})
	if err != nil {
		t.Fatal(err)
	}
	few, err := Compile(context.Background(), f, Options{Memory: 200_000, cells: -1})
	if err != nil {
		t.Fatal(err)
	}
	if few.Stats.Evicted == 0 || math.Abs(few.Z.Div(all.Z).Float64()-1) > 1e-12 {
		t.Errorf("Z = %v with few entries (%+v), %v with all (%+v)", few.Z, few.Stats, all.Z, all.Stats)
	}
}
