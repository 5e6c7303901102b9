package enginetest

// Assignments: the most probable one, and draws.

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// weights returns the weights of all assignments of a model under evidence, the last variable
// fastest.
func weights(m *factorgraph.Model, ev factorgraph.Evidence) (list []*big.Float, at func(x []int) int) {
	e := expressionOf(m, ev)
	at = func(x []int) int {
		k := 0
		for v, a := range x {
			k = k*m.Domains[v] + a
		}
		return k
	}
	oracle.Each(m.Domains, func(x []int) {
		w := new(big.Float).SetPrec(200).SetInt64(1)
		for _, t := range e.Tables {
			k := 0
			for _, v := range t.Scope {
				k = k*m.Domains[v] + x[v]
			}
			w.Mul(w, big.NewFloat(t.Data[k]))
		}
		list = append(list, w)
	})
	return list, at
}

func assignments(t *testing.T, e Engine) {
	if e.Assign == nil {
		t.Skip("it finds no assignments")
	}
	const draws = 2000
	e.each(t, 83, func(rng *rand.Rand, what string) error {
		m := e.draw(rng, false, true)
		p := New(t, m, modeltest.Evidence(rng, m), reparam.Options{}, rng.Uint64())
		w := Want{Sliced: rng.IntN(2) == 0}
		got, err := e.Assign(context.Background(), p, draws, w)
		if err != nil {
			return err
		}
		all, at := weights(p.Model, p.Evidence)
		z, top := new(big.Float).SetPrec(200), new(big.Float)
		for _, x := range all {
			z.Add(z, x)
			if x.Cmp(top) > 0 {
				top = x
			}
		}
		if z.Sign() == 0 {
			if got.Best != nil || got.Drawn != nil {
				t.Errorf("%s: %v and %d draws of an impossible model", what, got.Best, len(got.Drawn))
			}
			return nil
		}
		if got.Best == nil || len(got.Drawn) != draws {
			t.Errorf("%s: best %v, %d draws", what, got.Best, len(got.Drawn))
			return nil
		}
		if ln := oracle.Ln(top); math.Abs(oracle.Ln(all[at(got.Best)])-ln) > 1e-12*(1+math.Abs(ln)) ||
			math.Abs(got.Ln-ln) > 1e-11*(1+math.Abs(ln)) {
			t.Errorf("%s: ln weight %v of %v, the largest is %v", what, got.Ln, got.Best, ln)
		}

		// The probabilities of single values, each to six standard deviations.
		for v, d := range m.Domains {
			share := make([]*big.Float, d)
			for a := range share {
				share[a] = new(big.Float).SetPrec(200)
			}
			k := 0
			oracle.Each(m.Domains, func(x []int) {
				share[x[v]].Add(share[x[v]], all[k])
				k++
			})
			for a := range d {
				q, _ := new(big.Float).Quo(share[a], z).Float64()
				n := 0
				for _, x := range got.Drawn {
					if x[v] == a {
						n++
					}
				}
				if off := math.Abs(float64(n) - draws*q); off > 6*math.Sqrt(draws*q*(1-q))+1e-9 && off > 1 {
					t.Errorf("%s: variable %d is %d in %d of %d draws, with probability %v", what, v, a, n, draws, q)
				}
			}
		}
		if w.Sliced {
			return nil
		}
		again, err := e.Assign(context.Background(), p, draws, Want{Threads: 1})
		if err == nil && (!slices.Equal(again.Best, got.Best) || again.Ln != got.Ln ||
			!slices.EqualFunc(again.Drawn, got.Drawn, slices.Equal[[]int])) {
			t.Errorf("%s: one thread gives other assignments", what)
		}
		return err
	})
}
