package pairwise_test

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// chain is x_0 − x_1 − … with random matrices whose entries are of the given sizes,
// and its merges from the left.
func chain(
	rng *rand.Rand, n, dim int, sizes ...float64,
) (*sumproduct.Expression, contractionorder.Tree) {
	e := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{dim}, n)}
	t := contractionorder.Tree{Leaves: n - 1}
	for i := range n - 1 {
		data := make([]float64, dim*dim)
		for k := range data {
			data[k] = (0.5 + rng.Float64()) * sizes[rng.IntN(len(sizes))]
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, i + 1}, Data: data})
		if i == 1 {
			t.Merges = append(t.Merges, [2]int{0, 1})
		} else if i > 1 {
			t.Merges = append(t.Merges, [2]int{n - 3 + i, i})
		}
	}
	return e, t
}

// transfer is the chain's Z and the marginal of its middle by a product of vectors in big.Float.
func transfer(e *sumproduct.Expression) (*big.Float, []*big.Float) {
	n, dim := len(e.Dims), e.Dims[0]
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(100).SetFloat64(x) }
	step := func(v []*big.Float, data []float64, row, column int) []*big.Float {
		out := make([]*big.Float, dim)
		for j := range out {
			out[j] = number(0)
			for i := range v {
				out[j].Add(out[j], new(big.Float).Mul(v[i], number(data[i*row+j*column])))
			}
		}
		return out
	}
	left, right := make([]*big.Float, dim), make([]*big.Float, dim)
	for i := range dim {
		left[i], right[i] = number(1), number(1)
	}
	for k := range n / 2 {
		left = step(left, e.Tables[k].Data, dim, 1)
	}
	for k := n - 2; k >= n/2; k-- {
		right = step(right, e.Tables[k].Data, 1, dim)
	}
	z := number(0)
	for i := range left {
		left[i].Mul(left[i], right[i])
		z.Add(z, left[i])
	}
	return z, left
}

// TestExtremeRanges: chains whose Z is far outside float64,
// with entries at both ends of its range in one model.
func TestExtremeRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, c := range []struct {
		name  string
		n     int
		sizes []float64
	}{
		{"100000 variables", 100_000, []float64{1}}, {"small", 3000, []float64{1e-300}},
		{"large", 3000, []float64{1e300}},
		{"mixed", 3000, []float64{1e-150, 1e150}}, {"subnormal", 400, []float64{1e-310}},
	} {
		e, tree := chain(rng, c.n, 3, c.sizes...)
		z, middle := transfer(e)
		got, _, err := pairwise.Marginals(context.Background(), e, tree, pairwise.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, sliced := range [][]int{{c.n / 3}, {1, c.n - 2}, {c.n/2 - 1, c.n / 2}} {
			if c.n > 3000 {
				break
			}
			part, _, err := pairwise.Marginals(context.Background(), e, tree,
				pairwise.Options{Slices: sliced})
			if err != nil || !(math.Abs(part.Z.Div(got.Z).Float64()-1) < 1e-10) {
				t.Fatalf("%s, slices %v: Z is %v, want %v; %v", c.name, sliced, part.Z, got.Z, err)
			}
			for i := range e.Dims {
				for v, p := range part.Marginals[i] {
					if !(math.Abs(p-got.Marginals[i][v]) < 1e-10) {
						t.Fatalf("%s, slices %v: P(%d = %d) is %v, want %v",
							c.name, sliced, i, v, p, got.Marginals[i][v])
					}
				}
			}
		}
		again, _, err := pairwise.Contract(context.Background(), e, tree, pairwise.Options{})
		if err != nil || again != got.Z {
			t.Errorf("%s: Contract gives %v, Marginals %v, %v", c.name, again, got.Z, err)
		}
		exact := new(big.Float).SetMantExp(new(big.Float).SetFloat64(got.Z.Mant), int(got.Z.Exp))
		ratio, _ := new(big.Float).Quo(exact, z).Float64()
		if !(math.Abs(ratio-1) < 1e-10) {
			t.Errorf("%s: Z is off by a factor of 1%+g", c.name, ratio-1)
		}
		for v := range middle {
			p, _ := new(big.Float).Quo(middle[v], z).Float64()
			if !(math.Abs(got.Marginals[c.n/2][v]-p) < 1e-10) {
				t.Errorf("%s: P(middle = %d) is %v, want %v", c.name, v, got.Marginals[c.n/2][v], p)
			}
		}
	}
}

// TestErrors: each refusal names the place and the reason, before anything is computed.
func TestErrors(t *testing.T) {
	good := func() *sumproduct.Expression {
		return &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 3},
			Tables: []sumproduct.Table{
				{Scope: []int{0, 1}, Data: []float64{1, 2, 3, 4, 5, 6}}, {Scope: []int{1},
					Data: []float64{1, 1, 1}}}}
	}
	pair := contractionorder.Tree{Leaves: 2, Merges: [][2]int{{0, 1}}}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name   string
		change func(e *sumproduct.Expression)
		tree   contractionorder.Tree
		o      pairwise.Options
		ctx    context.Context
		want   error
		text   string
	}{
		{
			name:   "entries",
			change: func(e *sumproduct.Expression) { e.Tables[1].Data = e.Tables[1].Data[:2] },
			tree:   pair,
			want:   sumproduct.ErrExpression,
			text:   "table 1 has 2 entries",
		},
		{
			name:   "twice",
			change: func(e *sumproduct.Expression) { e.Tables[0].Scope = []int{1, 1} },
			tree:   pair,
			want:   sumproduct.ErrExpression,
			text:   "table 0 names index 1",
		},
		{
			name:   "dimension",
			change: func(e *sumproduct.Expression) { e.Dims[0] = 0 },
			tree:   pair,
			want:   sumproduct.ErrExpression,
			text:   "index 0 has dimension 0",
		},
		{
			name:   "NaN",
			change: func(e *sumproduct.Expression) { e.Tables[0].Data[3] = math.NaN() },
			tree:   pair,
			want:   sumproduct.ErrNotFinite,
			text:   "table 0",
		},
		{
			name:   "infinite",
			change: func(e *sumproduct.Expression) { e.Tables[1].Data[0] = math.Inf(-1) },
			tree:   pair,
			want:   sumproduct.ErrNotFinite,
			text:   "table 1",
		},
		{name: "leaves", tree: contractionorder.Tree{Leaves: 1}, want: contractionorder.ErrTree,
			text: "1 leaves, the network has 2"},
		{name: "merges", tree: contractionorder.Tree{Leaves: 2}, want: contractionorder.ErrTree,
			text: "2 tensors and 0 merges"},
		{name: "slice", tree: pair, o: pairwise.Options{Slices: []int{1, 1}},
			want: contractionorder.ErrTree, text: "index 1"},
		{
			name: "range",
			tree: pair,
			o:    pairwise.Options{Slices: []int{1}, To: 4},
			want: sumproduct.ErrExpression,
			text: "slices 0 to 4, there are 3",
		},
		{name: "memory", tree: pair, o: pairwise.Options{Memory: 103},
			want: sumproduct.ErrOverBudget, text: "needs 104 bytes"},
		{name: "cancelled", tree: pair, ctx: cancelled, want: context.Canceled, text: "canceled"},
	} {
		e := good()
		if c.change != nil {
			c.change(e)
		}
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		_, _, err := pairwise.Contract(c.ctx, e, c.tree, c.o)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: Contract says %v", c.name, err)
		}
		if c.name == "memory" {
			if fault.CodeOf(err) != fault.OverBudget {
				t.Errorf("code %s", fault.CodeOf(err))
			}
			continue // with marginals more is needed
		}
		if _, _, err = pairwise.Marginals(c.ctx, e, c.tree, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: Marginals says %v", c.name, err)
		}
	}
}

// TestEmpty: an expression without tables is the number of assignments.
func TestEmpty(t *testing.T) {
	e := &sumproduct.Expression{Scale: scaled.FromFloat(0.5), Dims: []int{3, 1, 4}}
	for _, sliced := range [][]int{nil, {2}, {0, 1, 2}} {
		got, _, err := pairwise.Marginals(context.Background(), e, contractionorder.Tree{},
			pairwise.Options{Slices: sliced})
		if err != nil || got.Z != scaled.FromFloat(6) ||
			!slices.Equal(got.Marginals[2], []float64{0.25, 0.25, 0.25, 0.25}) {
			t.Errorf("slices %v: %v, %v", sliced, got, err)
		}
	}
}

// TestZero: impossible expressions have Z = 0 and no marginals, by any table.
func TestZero(t *testing.T) {
	e, tree := chain(rand.New(rand.NewPCG(1, 1)), 6, 2, 1)
	for k := range e.Tables {
		data := e.Tables[k].Data
		e.Tables[k].Data = make([]float64, 4)
		for _, sliced := range [][]int{nil, {3}, {0, 5}} {
			got, _, err := pairwise.Marginals(context.Background(), e, tree,
				pairwise.Options{Slices: sliced})
			if err != nil || !got.Z.IsZero() || got.Marginals != nil {
				t.Errorf("table %d, slices %v: %v, %v", k, sliced, got, err)
			}
		}
		e.Tables[k].Data = data
	}
}
