package plan_test

// Bounds of exact answers beside sums in 60 digits: rounding in them is no more than they say.

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// forest is a model of tables of two variables: that of a variable and its parent, or of itself alone where the parent is −1.
type forest struct {
	parent []int // below the variable
	tables [][]float64
	d      int
}

func (f *forest) model() *factorgraph.Model {
	m := &factorgraph.Model{}
	for v, p := range f.parent {
		m.Domains = append(m.Domains, f.d)
		factor := factorgraph.Factor{Scope: []int{p, v}, Table: &tensor.Dense{Shape: []int{f.d, f.d}, Data: f.tables[v]}}
		if p < 0 {
			factor = factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{f.d}, Data: f.tables[v][:f.d]}}
		}
		m.Factors = append(m.Factors, factor)
	}
	return m
}

// lnZ sums from the leaves to the roots.
func (f *forest) lnZ() float64 {
	message := make([][]*big.Float, len(f.parent))
	for v := range message {
		for range f.d {
			message[v] = append(message[v], wideFloat(1))
		}
	}
	z := wideFloat(1)
	for v := len(f.parent) - 1; v >= 0; v-- {
		p := f.parent[v]
		rows := f.d
		if p < 0 {
			rows = 1
		}
		for a := range rows {
			sum := wideFloat(0)
			for b := range f.d {
				sum.Add(sum, new(big.Float).Mul(wideFloat(f.tables[v][a*f.d+b]), message[v][b]))
			}
			if p < 0 {
				z.Mul(z, sum)
			} else {
				message[p][a].Mul(message[p][a], sum)
			}
		}
	}
	return oracle.Ln(z)
}

// TestBoundsOfExactAnswersHold: chains, stars, trees and many parts, with random tables, equal ones and those of conditional
// probabilities.
func TestBoundsOfExactAnswersHold(t *testing.T) {
	for _, shape := range []string{"chain", "star", "tree", "parts"} {
		for _, entries := range []string{"random", "equal", "probabilities", "wide"} {
			t.Run(shape+" "+entries, func(t *testing.T) {
				for seed := range uint64(nightly.Rounds(2, 10)) {
					rng := rand.New(rand.NewPCG(seed, 53))
					n := int(100 * math.Exp(rng.Float64()*math.Log(float64(nightly.Rounds(60, 1000)))))
					if shape == "star" {
						n = min(n, 3000)
					}
					f := &forest{d: 2 + rng.IntN(3)}
					var same []float64
					for v := range n {
						p := v - 1
						switch shape {
						case "star":
							p = min(p, 0)
						case "tree":
							p = rng.IntN(max(1, v)) - min(1, max(0, 1-v))
						case "parts":
							if v%3 == 0 {
								p = -1
							}
						}
						if v == 0 {
							p = -1
						}
						table := make([]float64, f.d*f.d)
						for x := range table {
							switch entries {
							case "wide":
								table[x] = math.Exp(40 * rng.NormFloat64())
							default:
								table[x] = math.Exp(rng.NormFloat64())
							}
						}
						if entries == "probabilities" {
							for a := range f.d {
								row, sum := table[a*f.d:][:f.d], 0.0
								for _, y := range row {
									sum += y
								}
								for b := range row {
									row[b] /= sum
								}
							}
						}
						if entries == "equal" {
							if same == nil {
								same = table
							}
							table = same
						}
						f.parent, f.tables = append(f.parent, p), append(f.tables, table)
					}
					settings := query.Settings{Method: query.MethodExact}
					results, err := stage.Run(t.Context(), stage.Request{
						Model: f.model(), Queries: []query.Query{{}, {Marginals: true}}, Settings: settings,
					}, kept{})
					if err != nil {
						t.Fatal(err)
					}
					want := f.lnZ()
					for q, r := range results {
						name := fmt.Sprintf("seed %d, n = %d, d = %d, query %d", seed, n, f.d, q)
						if r.Error != nil || !r.Exact {
							t.Errorf("%s: exact %v, %+v", name, r.Exact, r.Error)
							continue
						}
						t.Logf("%s: %.4g, off by %.2g", name, want, *r.LogZ-want)
						if want < *r.Bounds.Lower || want > *r.Bounds.Upper {
							t.Errorf("%s: ln Z %v in [%v, %v], want %v", name, *r.LogZ, *r.Bounds.Lower, *r.Bounds.Upper, want)
						}
					}
				}
			})
		}
	}
}
