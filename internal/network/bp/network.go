package bp

// The messages between the factors and the variables of a model, and the base tensor network in
// their gauge.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// maxGauge is the largest condition number of a map made of messages. It is (1 + sin φ)/cos φ, φ the
// angle between the two messages: near a right angle where the factor all but excludes the values
// preferred by the rest of the model.
const maxGauge = 1e4

// sameMessages bounds the difference between messages of a symmetric factor's legs (entries of
// normalised ones) that are taken as one, so that the factor keeps its form: rounding, well above
// it.
const sameMessages = 1e-10

// Network returns the base tensor network of m in the gauge of belief propagation without evidence,
// by reparam.Build.
//
// With m_{j→i} and v_{i→j} the messages of an incidence, ⟨m, v⟩ = 1 and |m| = |v|, column 0 of
// A^(i:j) is m_{j→i} and row 0 of its inverse is v_{i→j}. At a fixed point, cores "factors", B_0…0 ·
// Π_i V^(i)_0…0 · Scale is the Bethe value, and no T̄^(j) or V^(i) has an entry with exactly one
// value that is not 0. Cores "variables" get the same maps; the legs to the order-one links keep the
// identity, and the two statements hold with these summed.
//
// A leg keeps the identity where its messages would make a map of condition number above 1e4, where
// they contradict each other, and where a factor takes no part in belief propagation. Messages that
// have not converged are a gauge all the same: Z does not depend on it, and a warning says so.
//
// Errors: from reparam.Build and Run; messages that float64 cannot hold are no error, all maps are
// the identity then. Cost: the sum of both.
func Network(
	ctx context.Context, m *factorgraph.Model, cores query.CoreChoice, o Options,
) (*btn.Network, error) {
	g, err := newGauge(ctx, m, o)
	if err != nil && !errors.Is(err, sumproduct.ErrSpan) {
		return nil, err
	}
	net, err := reparam.Build(ctx, m, reparam.Options{Maps: query.MapBP, Cores: cores, Given: g.maps})
	if err != nil {
		return nil, err
	}
	net.Warnings = append(net.Warnings, gaugeWarnings(net)...)
	return net, nil
}

// gauge holds the messages of every incidence of a model.
type gauge struct {
	factors *factors
	state   *State // nil where float64 cannot hold the messages
}

// newGauge runs belief propagation on a model. Beside an error that wraps sumproduct.ErrSpan there
// is a gauge of identities.
func newGauge(ctx context.Context, m *factorgraph.Model, o Options) (*gauge, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("bp: %w", err)
	}
	w, err := reparam.AbsorbUnary(m)
	if err != nil {
		return nil, err
	}
	f, err := newFactors(ctx, m, w.Of, w.Scale)
	if err != nil {
		return nil, err
	}
	state, err := Run(ctx, f.e, o)
	return &gauge{factors: f, state: state}, err
}

// maps returns the maps of factor j's incidences: the identity where there are no messages (the
// factor was left out, or messages contradict each other) or where they would make an
// ill-conditioned map.
func (g *gauge) maps(j int) []reparam.GivenMap {
	at := g.factors.at[j]
	out := make([]reparam.GivenMap, len(at))
	if len(at) == 0 || at[0].table < 0 || g.state == nil || g.state.Contradiction >= 0 {
		return out
	}

	same := isSymmetric(g.factors.model.Factors[j].Table)
	for k, here := range at {
		m := g.state.ToVariable(here.table, here.k)
		v := g.state.ToFactor(here.table, here.k)
		if k > 0 && same {
			same = close(m, g.state.ToVariable(at[0].table, at[0].k)) &&
				close(v, g.state.ToFactor(at[0].table, at[0].k))
		}
		if p, ok := gaugeOf(m, v); ok {
			out[k] = p
		}
	}

	if same {
		for k := range out {
			out[k] = out[0]
		}
	}
	return out
}

// isSymmetric says whether a tensor keeps its form only under equal maps.
func isSymmetric(t tensor.Tensor) bool {
	switch t.(type) {
	case *tensor.Symmetric, *tensor.SymmetryCP:
		return true
	}
	return false
}

// close says whether two messages are the same up to rounding.
func close(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for x := range a {
		if !(math.Abs(a[x]-b[x]) <= sameMessages*max(1, math.Abs(a[x]))) {
			return false
		}
	}
	return true
}

// gaugeOf returns Gauge of the messages scaled to one norm; false for a condition number above
// maxGauge.
func gaugeOf(m, v []float64) (reparam.GivenMap, bool) {
	a, b := math.Sqrt(scalarProduct(m, m)), math.Sqrt(scalarProduct(v, v))
	cos := 1 / (a * b) // ⟨m, v⟩ = 1
	if !(math.Abs(scalarProduct(m, v)-1) < 1e-6) || !((1+math.Sqrt(max(0, 1-cos*cos)))/cos <= maxGauge) {
		return reparam.GivenMap{}, false
	}

	by := math.Sqrt(b / a)
	left, right := make([]float64, len(m)), make([]float64, len(v))
	for x := range m {
		left[x] = m[x] * by
		right[x] = v[x] / by
	}
	matrix, inverse := Gauge(left, right)
	return reparam.GivenMap{A: matrix, Inverse: inverse}, true
}
