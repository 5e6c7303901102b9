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

// weights returns the weights of all assignments of a model under evidence, row-major: the last variable changes fastest. indexOf returns
// the index of an assignment x in the list.
func weights(m *factorgraph.Model, ev factorgraph.Evidence) (list []*big.Float, indexOf func(x []int) int) {
	e := expressionOf(m, ev)
	indexOf = func(x []int) int {
		index := 0
		for v, a := range x {
			index = index*m.Domains[v] + a
		}
		return index
	}
	oracle.Each(m.Domains, func(x []int) {
		w := new(big.Float).SetPrec(200).SetInt64(1)
		for _, t := range e.Tables {
			index := 0
			for _, v := range t.Scope {
				index = index*m.Domains[v] + x[v]
			}
			w.Mul(w, big.NewFloat(t.Data[index]))
		}
		list = append(list, w)
	})
	return list, indexOf
}

// assignments checks the property Assignments: the best assignment has the largest weight, the shares of values among 2000 draws are the
// marginals to six standard deviations, an impossible model has no assignments, and any number of threads finds the same ones.
func assignments(t *testing.T, e Engine) {
	if e.Assign == nil {
		t.Skip("it finds no assignments")
	}
	const draws = 2000
	e.forEachRound(t, 83, func(rng *rand.Rand, what string) error {
		m := e.drawModel(rng, entryKinds{zeros: true})
		p := NewProblem(t, m, modeltest.Evidence(rng, m), reparam.Options{}, rng.Uint64())
		w := Want{Sliced: rng.IntN(2) == 0}
		got, err := e.Assign(context.Background(), p, draws, w)
		if err != nil {
			return err
		}

		// Z and the largest weight by enumeration.
		all, indexOf := weights(p.Model, p.Evidence)
		z, largest := new(big.Float).SetPrec(200), new(big.Float)
		for _, x := range all {
			z.Add(z, x)
			if x.Cmp(largest) > 0 {
				largest = x
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

		// The best assignment has the largest weight, and its weight is right.
		ln := oracle.Ln(largest)
		isLargest := math.Abs(oracle.Ln(all[indexOf(got.Best)])-ln) <= 1e-12*(1+math.Abs(ln))
		if !isLargest || math.Abs(got.Ln-ln) > 1e-11*(1+math.Abs(ln)) {
			t.Errorf("%s: ln weight %v of %v, the largest is %v", what, got.Ln, got.Best, ln)
		}

		// How often each variable has each value among the draws, to six standard deviations.
		for v, d := range m.Domains {
			valueWeights := make([]*big.Float, d)
			for a := range valueWeights {
				valueWeights[a] = new(big.Float).SetPrec(200)
			}
			k := 0
			oracle.Each(m.Domains, func(x []int) {
				valueWeights[x[v]].Add(valueWeights[x[v]], all[k])
				k++
			})
			for a := range d {
				q, _ := new(big.Float).Quo(valueWeights[a], z).Float64()
				count := 0
				for _, x := range got.Drawn {
					if x[v] == a {
						count++
					}
				}
				deviation := math.Abs(float64(count) - draws*q)
				if deviation > 6*math.Sqrt(draws*q*(1-q))+1e-9 && deviation > 1 {
					t.Errorf("%s: variable %d is %d in %d of %d draws, with probability %v", what, v, a, count, draws, q)
				}
			}
		}

		// One thread finds the same assignments as any number of them.
		if w.Sliced {
			return nil
		}
		again, err := e.Assign(context.Background(), p, draws, Want{Threads: 1})
		isSame := slices.Equal(again.Best, got.Best) && again.Ln == got.Ln &&
			slices.EqualFunc(again.Drawn, got.Drawn, slices.Equal[[]int])
		if err == nil && !isSame {
			t.Errorf("%s: one thread gives other assignments", what)
		}
		return err
	})
}
