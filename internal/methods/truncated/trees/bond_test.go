package trees_test

// Truncated contractions: how the errors of Z and of marginals fall with the bond.

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// grid is a square lattice of pair tables and one table per index, entries e^N(0,1)·strength.
func grid(rows, cols int, strength float64, seed uint64) *sumproduct.Expression {
	rng := rand.New(rand.NewPCG(seed, 5))
	e := &sumproduct.Expression{Scale: scaled.One}
	for i := range rows * cols {
		e.Dims = append(e.Dims, 2)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: []float64{1, math.Exp(0.3 * rng.NormFloat64())}})
	}
	pair := func(i, j int) {
		c := math.Exp(strength * rng.NormFloat64())
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: []float64{c, 1 / c, 1 / c, c}})
	}
	for r := range rows {
		for c := range cols {
			if c+1 < cols {
				pair(r*cols+c, r*cols+c+1)
			}
			if r+1 < rows {
				pair(r*cols+c, r*cols+c+cols)
			}
		}
	}
	return e
}

func contract(t *testing.T, e *sumproduct.Expression, p trees.Plan, o trees.Options) legs.Value {
	t.Helper()
	v, err := trees.Contract(context.Background(), e, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func exact(t *testing.T, e *sumproduct.Expression) scaled.Number {
	t.Helper()
	z, _, err := einsum.Contract(context.Background(), e, orders.Best(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestErrorFallsWithTheBond holds for every tree and every gauge; the bound of the largest bond is 100 times the measured error.
func TestErrorFallsWithTheBond(t *testing.T) {
	e := grid(8, 8, 0.7, 1)
	want := exact(t, e)
	for k, p := range trees.Attempts(e.Hypergraph(), 8, 2, 5) {
		for _, gauge := range []int{-1, 1, 3} {
			for _, c := range []struct {
				bond  int
				error float64
			}{{2, 2}, {8, 1e-2}, {64, 1e-12}} {
				v := contract(t, e, p, trees.Options{Bond: c.bond, Gauge: gauge})
				if d := math.Abs(v.Z.LogAbs() - want.LogAbs()); !(d <= c.error) {
					t.Errorf("plan %d, gauge %d, bond %d: ln Z is off by %.2g", k, gauge, c.bond, d)
				}
				if v.Bond > c.bond || v.Truncated != (v.Discarded > 0) || c.bond == 2 && !v.Truncated {
					t.Errorf("plan %d, bond %d: %+v", k, c.bond, v)
				}
			}
		}
	}
}

// TestPredictions: counts stay below the bounds of Evaluate.
func TestPredictions(t *testing.T) {
	for seed := range uint64(5) {
		e := grid(8, 8, 0.7, seed)
		for k, p := range trees.Attempts(e.Hypergraph(), 8, seed, 6) {
			for _, bond := range []int{3, 8} {
				cost, err := trees.Evaluate(e.Hypergraph(), p, bond)
				if err != nil {
					t.Fatal(err)
				}
				for _, marginals := range []bool{false, true} {
					limit := cost.Bytes
					if marginals {
						limit = cost.MarginalBytes
					}
					o := trees.Options{Bond: bond, Marginals: marginals, Memory: int64(limit)}
					v := contract(t, e, p, o)
					if v.PeakBytes > limit || v.PeakBytes < limit/100 || !marginals && v.Flops > cost.Flops || v.Flops > 4*cost.Flops {
						t.Errorf("seed %d, plan %d, bond %d, marginals %v: %.4g of %.4g bytes, "+
							"%.4g of %.4g flops", seed, k, bond,
							marginals, v.PeakBytes, limit, v.Flops, cost.Flops)
					}
					o.Memory--
					if _, err := trees.Contract(context.Background(), e, p,
						o); fault.CodeOf(err) != fault.OverBudget ||
						!errors.Is(err, sumproduct.ErrOverBudget) {
						t.Fatalf("one byte less: %v", err)
					}
				}
			}
		}
	}
}

// clamp returns e with the other entry of the unary table of an index set to 0: Z of index = v.
func clamp(e *sumproduct.Expression, index, v int) *sumproduct.Expression {
	c := *e
	c.Tables = slices.Clone(e.Tables)
	c.Tables[index].Data = slices.Clone(e.Tables[index].Data)
	c.Tables[index].Data[1-v] = 0
	return &c
}

// TestErrorOfMarginalsFallsWithTheBond compares marginals of truncated contractions with Z(i = v) / Z, over all values.
func TestErrorOfMarginalsFallsWithTheBond(t *testing.T) {
	e := grid(6, 6, 0.7, 3)
	all := exact(t, e)
	for k, p := range trees.Attempts(e.Hypergraph(), 2, 4, 6) {
		for _, c := range []struct {
			bond  int
			error float64
		}{{2, 0.1}, {4, 1e-2}, {64, 1e-10}} {
			v := contract(t, e, p, trees.Options{Bond: c.bond, Marginals: true})
			if c.bond == 2 && !v.Truncated {
				t.Errorf("plan %d: nothing was truncated", k)
			}
			for i := 0; i < len(e.Dims); i += 5 {
				for x := range 2 {
					want := exact(t, clamp(e, i, x)).Div(all).Float64()
					if d := math.Abs(v.Marginals[i][x] - want); !(d <= c.error) {
						t.Errorf("plan %d, bond %d: P(%d = %d) = %v, want %v", k, c.bond, i, x, v.Marginals[i][x], want)
					}
				}
			}
		}
	}
}
