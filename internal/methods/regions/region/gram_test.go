package region

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// gaugedTable returns T̄^(t): the inverse map of its leg applied along every mode of every table.
func gaugedTable(e *sumproduct.Expression, s *bp.State, t int) []float64 {
	table := e.Tables[t]
	data := slices.Clone(table.Data)
	for k, i := range table.Scope {
		_, inverse := bp.Gauge(s.ToVariable(t, k), s.ToFactor(t, k))
		d, inner := e.Dims[i], 1
		for _, j := range table.Scope[k+1:] {
			inner *= e.Dims[j]
		}
		next := make([]float64, len(data))
		for at := range data {
			row, base := at/inner%d, at-at/inner%d*inner
			for x := range d {
				next[at] += inverse[row*d+x] * data[base+x*inner]
			}
		}
		data = next
	}
	return data
}

// TestGramMatrixGivesMoebiusWeights: for leg sets closed under plain intersection the normal
// equations of the Frobenius objective, with G_rs = ‖Q^(r∩s)‖² and b_r = ‖Q^(r)‖² from the entries
// of the gauged base tensor, have the Möbius numbers as their solution.
func TestGramMatrixGivesMoebiusWeights(t *testing.T) {
	const tolerance = 1e-8
	for seed := range uint64(12) {
		e := grid(3, 3, 0.8, seed)
		if seed%2 == 1 {
			e = random(6, 7, 1, seed)
		}
		s := propagate(t, e)
		g, err := newGraph(e.Hypergraph())
		if err != nil {
			t.Fatal(err)
		}
		regions := plainFamily(t, g, seed)
		base := make([][]float64, len(e.Tables))
		for k := range e.Tables {
			base[k] = gaugedTable(e, s, k)
		}
		n := regions.len()
		gram, b, alpha := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
		for r := range n {
			for o := range n {
				gram.Set(r, o, norm2(g, e, base, common(regions.region(r), regions.region(o))))
			}
			b.SetVec(r, norm2(g, e, base, regions.region(r)))
		}
		if err := alpha.SolveVec(gram, b); err != nil {
			t.Fatalf("seed %d, %d regions: %v", seed, n, err)
		}
		other := false
		for r, want := range weights(t, g, regions) {
			other = other || want != 1
			if math.Abs(alpha.AtVec(r)-float64(want)) > tolerance {
				t.Errorf("seed %d, region %d of %d: the normal equations say %v, Möbius %d",
					seed, r, n, alpha.AtVec(r), want)
			}
		}
		if !other {
			t.Errorf("seed %d: regions do not overlap", seed)
		}
	}
}

// plainFamily draws sets of tables with all their legs and closes them under plain intersection. One
// table is in all of them, so that the empty set, which moebius does not know, is not needed.
func plainFamily(t *testing.T, g *graph, seed uint64) *store {
	rng := rand.New(rand.NewPCG(seed, 6))
	s := newStore(500)
	for range 6 {
		var legs []int32
		for k := range g.edges {
			if k == int(g.tableOf[0]) || rng.IntN(2) == 0 {
				for leg := g.firstLeg[k]; leg < g.firstLeg[k+1]; leg++ {
					legs = append(legs, leg)
				}
			}
		}
		if _, _, err := s.add(legs); err != nil {
			t.Fatal(err)
		}
	}
	for r := 0; r < s.len(); r++ {
		for o := 0; o < r; o++ {
			if both := common(s.region(r), s.region(o)); len(both) > 0 {
				if _, _, err := s.add(both); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return s
}

func common(a, b []int32) []int32 {
	var out []int32
	for _, leg := range a {
		if slices.Contains(b, leg) {
			out = append(out, leg)
		}
	}
	return out
}

// norm2 returns ‖Q^(r)‖²: the squares of the base tensor's entries with every leg outside r at 0.
func norm2(g *graph, e *sumproduct.Expression, base [][]float64, legs []int32) float64 {
	total := 1.0
	for t, data := range base {
		scope := e.Tables[t].Scope
		if len(scope) < 2 {
			continue
		}
		sum := 0.0
		for at, v := range data {
			rest, inside := at, true
			for k := len(scope) - 1; k >= 0; k-- {
				d := e.Dims[scope[k]]
				inside = inside && (rest%d == 0 || slices.Contains(legs, g.firstLeg[t]+int32(k)))
				rest /= d
			}
			if inside {
				sum += v * v
			}
		}
		total *= sum
	}
	return total
}
