package preprocess_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// local draws a network of low width, too large for enumeration:
// tables over neighbours in a strip, many of their entries 0, one assignment possible at least.
func local(rng *rand.Rand, n int) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	for range n {
		e.Dims = append(e.Dims, 2+rng.IntN(3))
	}
	d := drawing{zeros: 0.35}
	for range 2 * n {
		first := rng.IntN(n)
		var scope, dims []int
		for i := first; i < min(first+5, n); i++ {
			if len(scope) < 4 && rng.IntN(2) == 0 {
				scope, dims = append(scope, i), append(dims, e.Dims[i])
			}
		}
		rng.Shuffle(len(scope), func(i, j int) {
			scope[i], scope[j], dims[i], dims[j] = scope[j], scope[i], dims[j], dims[i]
		})
		data := randomTable(rng, dims, d)
		if rng.IntN(3) == 0 {
			data = structuredTable(rng, dims, d)
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	plant(rng, e)
	return e
}

func value(t *testing.T, e *sumproduct.Expression) scaled.Number {
	t.Helper()
	z, _, err := einsum.Contract(t.Context(), e, orders.Best(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// renumbered is e with its indices and tables in another
// sequence and the values of every index permuted.
func renumbered(rng *rand.Rand, e *sumproduct.Expression) *sumproduct.Expression {
	out := &sumproduct.Expression{Scale: e.Scale, Dims: make([]int, len(e.Dims))}
	place := rng.Perm(len(e.Dims))
	values := make([][]int, len(e.Dims))
	for i, d := range e.Dims {
		out.Dims[place[i]] = d
		values[i] = rng.Perm(d)
	}
	for _, n := range rng.Perm(len(e.Tables)) {
		t := e.Tables[n]
		moved := sumproduct.Table{Data: make([]float64, len(t.Data))}
		for _, i := range t.Scope {
			moved.Scope = append(moved.Scope, place[i])
		}
		for at, v := range t.Data {
			to, rest, stride := 0, at, 1
			for k := len(t.Scope) - 1; k >= 0; k-- {
				d := e.Dims[t.Scope[k]]
				to += stride * values[t.Scope[k]][rest%d]
				rest, stride = rest/d, stride*d
			}
			moved.Data[to] = v
		}
		out.Tables = append(out.Tables, moved)
	}
	return out
}

// TestValueOfLargerNetworks:
// simplified once, twice, with every option, renumbered, and part by part, Z is the same.
func TestValueOfLargerNetworks(t *testing.T) {
	const seed = 91
	rng := rand.New(rand.NewPCG(seed, 1))
	for range nightly.Rounds(10, 60) {
		e := local(rng, 40+rng.IntN(40))
		want := value(t, e)
		agree := func(what string, z scaled.Number) {
			t.Helper()
			if d := math.Abs(z.Div(want).Float64() - 1); !(d <= tolerance) {
				t.Errorf("seed %d: %s: Z differs by %.3g", seed, what, d)
			}
		}
		for what, o := range map[string]preprocess.Options{
			"z": {}, "marginals": {Marginals: true}, "no probes": {Probes: -1},
			"no structure": {NoStructure: true},
			"small tables": {MaxEntries: 8}, "keep": {Keep: []int{3,
				17}}, "structure": preprocess.Always(preprocess.Options{Marginals: true}),
		} {
			r := run(t, e, o)
			agree(what, value(t, r.Expression))
			agree(what+", twice", value(t, run(t, r.Expression, o).Expression))
			agree(what+", by parts", byParts(t, r))
		}
		agree("renumbered", value(t, run(t, renumbered(rng, e), preprocess.Options{}).Expression))
	}
}

// byParts multiplies the values of the parts, which are solved apart.
func byParts(t *testing.T, r *preprocess.Result) scaled.Number {
	t.Helper()
	z := r.Expression.Scale
	used := make([]bool, len(r.Expression.Dims))
	for _, tables := range r.Parts {
		part := &sumproduct.Expression{Scale: scaled.One,
			Dims: slices.Repeat([]int{1}, len(r.Expression.Dims))}
		for _, n := range tables {
			part.Tables = append(part.Tables, r.Expression.Tables[n])
			for _, i := range r.Expression.Tables[n].Scope {
				part.Dims[i] = r.Expression.Dims[i]
				used[i] = true
			}
		}
		z = z.Mul(value(t, part))
	}
	for i, d := range r.Expression.Dims {
		if !used[i] {
			z = z.Mul(scaled.FromFloat(float64(d)))
		}
	}
	return z
}
