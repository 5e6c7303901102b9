package counts_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// countedModel draws one to three symmetric factors over some of the variables each, with unary factors,
// many of them equal, and a few tables between variables.
func countedModel(rng *rand.Rand, signs, zeros bool) *factorgraph.Model {
	o := modeltest.SmallOptions{Negative: signs}
	if zeros {
		o.Zeros = 0.2
	}
	m := &factorgraph.Model{}
	n, d := 3+rng.IntN(5), 2
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		n, d = 3+rng.IntN(3), 3
	case 4:
		d = 1 // nothing counts
	}
	for range n {
		m.Domains = append(m.Domains, d)
	}
	add := func(scope []int, t tensor.Tensor) {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
	some := func(k int) []int {
		scope := rng.Perm(n)[:k]
		slices.Sort(scope)
		return scope
	}
	dims := func(k int) []int { return slices.Repeat([]int{d}, k) }

	for range 1 + rng.IntN(3) {
		scope := some(2 + rng.IntN(n-1))
		kind := []modeltest.Kind{modeltest.Symmetric, modeltest.SymmetryCP}[rng.IntN(2)]
		add(scope, modeltest.Tensor(rng, kind, dims(len(scope)), o))
	}
	shared := []tensor.Tensor{}
	for range 2 {
		shared = append(shared, modeltest.Tensor(rng, modeltest.Dense, dims(1), o))
	}
	for v := range n {
		if rng.IntN(4) > 0 {
			add([]int{v}, shared[rng.IntN(2)])
		}
	}
	table := modeltest.Tensor(rng, modeltest.Dense, dims(2), o)
	for range rng.IntN(4) {
		if rng.IntN(2) == 0 {
			table = modeltest.Tensor(rng, []modeltest.Kind{modeltest.Dense, modeltest.CP}[rng.IntN(2)], dims(2), o)
		}
		add(some(2), table)
	}
	return m
}

// eachPart calls do for one component per choice of a term in every symmetric core.
func eachPart(net *btn.Network, do func(part *counts.Counts, alpha scaled.Number) error) error {
	part := &counts.Counts{}
	var forms []*tensor.SymmetryCP
	for c, core := range net.Cores {
		if form := counts.AsSymmetricTerms(core.T); form != nil {
			part.Cores = append(part.Cores, c)
			part.Terms = append(part.Terms, 0)
			forms = append(forms, form)
		}
	}
	if len(forms) == 0 {
		return enginetest.ErrDeclined
	}
	for {
		alpha := scaled.One
		for k, i := range part.Terms {
			if len(forms[k].Terms) == 0 {
				return enginetest.ErrDeclined
			}
			alpha = alpha.Mul(scaled.FromFloat(forms[k].Terms[i].Alpha))
		}
		if err := do(part, alpha); err != nil {
			return err
		}
		k := len(forms) - 1
		for ; k >= 0; k-- {
			if part.Terms[k]++; part.Terms[k] < len(forms[k].Terms) {
				break
			}
			part.Terms[k] = 0
		}
		if k < 0 {
			return nil
		}
	}
}

// TestCountEngine: symmetric factors that overlap, equal legs, tables between legs.
func TestCountEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Draw: countedModel,
		Contract: func(
			ctx context.Context, p *enginetest.Problem, w enginetest.Want,
		) (out enginetest.Value, err error) {
			// The problem's maps and cores are ignored: the exact way takes none.
			net, err := reparam.Build(ctx, p.Model, reparam.Options{})
			if err != nil {
				return out, err
			}
			if net, err = net.Condition(p.Evidence); err != nil {
				return out, err
			}
			total := 0
			for _, d := range p.Model.Domains {
				total += d
			}
			sum := make([]scaled.Number, total)
			var joint []scaled.Number
			for _, core := range net.Cores {
				if len(core.Legs) == 0 {
					return out, enginetest.ErrDeclined
				}
			}
			memory := w.Memory
			if memory == 0 {
				memory = 1 << 30
			}
			err = eachPart(net, func(part *counts.Counts, alpha scaled.Number) error {
				f, err := counts.NewForm(ctx, net, part, counts.Options{Memory: memory})
				if counts.IsNoForm(err) {
					return enginetest.ErrDeclined
				}
				if err != nil {
					return err
				}
				a, err := f.Value(ctx, w.Marginals)
				if err != nil {
					return err
				}
				alpha = alpha.Mul(net.Scale)
				out.Z = out.Z.Add(alpha.Mul(a.Z))
				for i, x := range a.Marginals {
					sum[i] = sum[i].Add(alpha.Mul(x))
				}
				if w.Joint == nil {
					return nil
				}
				if a, err = f.Joint(ctx, w.Joint); err != nil {
					return err
				}
				if joint == nil {
					joint = make([]scaled.Number, len(a.Joint))
				}
				for i, x := range a.Joint {
					joint[i] = joint[i].Add(alpha.Mul(x))
				}
				return nil
			})
			if err != nil || out.Z.IsZero() {
				return out, err
			}
			for _, d := range p.Model.Domains {
				if w.Marginals {
					out.Marginals = append(out.Marginals, enginetest.Normalised(out.Z, [][]scaled.Number{sum[:d]})[0])
					sum = sum[d:]
				}
			}
			if w.Joint != nil {
				out.Joint = enginetest.Normalised(out.Z, [][]scaled.Number{joint})[0]
			}
			return out, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Expressions: "parts are of networks",
			enginetest.Maps:        "other maps make symmetric factors dense",
			enginetest.Slices:      "an estimate is cut by its parts",
			enginetest.Threads:     "it runs in one goroutine",
			enginetest.OverBudget:  "see TestMemory",
			enginetest.ZeroZ:       "its networks have a symmetric factor: see TestImpossible",
			enginetest.Range:       "its networks have a symmetric factor: see TestWindowsAgainstTheWhole",
			enginetest.Cancelled:   "see TestCancelled",
		},
	})
}
