package methods_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// oneSymmetric draws a model of one symmetry-CP factor over all variables,
// and a factor per variable: its network is its own estimate, a part per term.
func oneSymmetric(rng *rand.Rand, signs, zeros bool) *factorgraph.Model {
	o := modeltest.SmallOptions{Negative: signs}
	if zeros {
		o.Zeros = 0.2
	}
	m := &factorgraph.Model{}
	var scope []int
	for v := range 2 + rng.IntN(6) {
		m.Domains, scope = append(m.Domains, 2+rng.IntN(2)), append(scope, v)
	}
	m.Factors = append(m.Factors,
		factorgraph.Factor{Scope: scope,
			Table: modeltest.Tensor(rng, modeltest.SymmetryCP, m.Domains, o)})
	for v, d := range m.Domains {
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{v},
				Table: modeltest.Tensor(rng, modeltest.Dense, []int{d}, o)})
	}
	return m
}

// TestCountEngine: closed forms in count space (Lemma 4), and Lemma 5 over them.
func TestCountEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Draw: oneSymmetric,
		Contract: func(ctx context.Context, p *enginetest.Problem,
			w enginetest.Want) (out enginetest.Value, err error) {
			symmetric, ok := p.Network.Cores[0].T.(*tensor.SymmetryCP)
			if !ok || len(p.Network.Cores) > 1 || len(symmetric.Shape) != len(p.Network.Dims) {
				return out, enginetest.ErrDeclined
			}
			e, _ := symmetryCP(symmetric)
			total := 0
			for _, d := range p.Model.Domains {
				total += d
			}
			marginals := make([]scaled.Number, total)
			var joint []scaled.Number
			own := problem.New(p.Network, problem.Options{Memory: w.Memory})
			for i, part := range e.Parts {
				v, err := contraction.Part(ctx, own, part,
					btn.Want{Marginals: w.Marginals, Joint: w.Joint})
				if err != nil {
					return out, err
				}
				out.Z = out.Z.Add(e.Weights()[i].Mul(v.Z))
				if w.Marginals {
					addTo(marginals, e.Weights()[i], v.Marginals)
				}
				if w.Joint != nil {
					if joint == nil {
						joint = make([]scaled.Number, len(v.Joint.Mant))
					}
					addTo(joint, e.Weights()[i], v.Joint)
				}
			}
			if out.Z.IsZero() {
				return out, nil
			}
			for _, d := range p.Model.Domains {
				if w.Marginals {
					out.Marginals = append(out.Marginals,
						enginetest.Normalised(out.Z, [][]scaled.Number{marginals[:d]})[0])
					marginals = marginals[d:]
				}
			}
			if w.Joint != nil {
				out.Joint = enginetest.Normalised(out.Z, [][]scaled.Number{joint})[0]
			}
			return out, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Expressions: "parts are of networks",
			enginetest.Maps:        "other maps make the symmetric factor dense",
			enginetest.Slices: "an estimate is cut by its parts: see " +
				"TestLemma5AdditiveDecomposition",
			enginetest.Threads: "it runs in one goroutine",
			enginetest.OverBudget: "count polynomials of 40 variables are small: see " +
				"TestMemoryBudget",
			enginetest.ZeroZ: "its networks are of one symmetric factor: see " +
				"TestMarginalsOfZeroPartition",
			enginetest.Range: "its networks are of one symmetric factor: see " +
				"TestSymmetricCoreOver1000Legs",
			enginetest.Cancelled: "its networks are of one symmetric factor: see " +
				"TestMarginalsStop",
		},
	})
}

// addTo adds α times a list of marginals.
func addTo(sum []scaled.Number, alpha scaled.Number, m *btn.Marginals) {
	for k, x := range m.Mant {
		sum[k] = sum[k].Add(alpha.Mul(scaled.Make(x, m.Exp)))
	}
}
