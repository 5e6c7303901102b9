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

// maxGauge is the limit of the condition number of a map made of two messages. With φ the angle between them it is (1 + sin φ)/cos φ. φ is
// near a right angle if the factor almost excludes the values that the remaining model prefers.
const maxGauge = 1e4

// messageTolerance is the largest difference between entries of normalised messages that count as equal. If the messages on all legs
// of a symmetric factor are equal, all legs get one map, and the factor keeps its form. The limit is well above rounding.
const messageTolerance = 1e-10

// GaugedNetwork returns the base tensor network of a model in the gauge of belief propagation: it runs belief propagation without
// evidence, and reparam.Build applies the maps that are made of the messages.
//
// Let m_{j→i} and v_{i→j} be the messages between factor j and variable i, scaled so that ⟨m, v⟩ = 1 and |m| = |v|. Column 0 of the map
// A^(i:j) is m_{j→i}, and row 0 of its inverse is v_{i→j}. Let T̄^(j) and V^(i) be the tensors of factor j and variable i after the maps,
// and B = Π_j T̄^(j). At a fixed point, with factors as cores, B_0…0 · Π_i V^(i)_0…0 · Scale is the Bethe value, and every entry of T̄^(j)
// and V^(i) with exactly one value other than 0 is 0. With variables as cores the maps are the same. Then the legs to the links of order
// one keep the identity, and both statements hold after these legs are summed.
//
// A leg keeps the identity if its messages would make a map of condition number above 1e4, if messages contradict each other, or if its
// factor takes no part in belief propagation. Messages that have not converged are a gauge, too, with a warning: Z does not depend on the
// maps.
//
// Errors: those of reparam.Build and Run. If float64 cannot hold the messages, this is no error: all maps are the identity. Cost: the sum
// of both.
func GaugedNetwork(
	ctx context.Context, m *factorgraph.Model, cores query.CoreChoice, o Options,
) (*btn.Network, error) {
	g, err := newGauge(ctx, m, o)
	if err != nil && !errors.Is(err, sumproduct.ErrSpan) { // with ErrSpan g has no maps
		return nil, err
	}
	net, err := reparam.Build(ctx, m, reparam.Options{Maps: query.MapBP, Cores: cores, Given: g.mapsOf})
	if err != nil {
		return nil, err
	}
	net.Warnings = append(net.Warnings, gaugeWarnings(net)...)
	return net, nil
}

// gauge has the messages of belief propagation between the factors and the variables of a model. The two messages on a leg, one in each
// direction, make the map of the leg (Gauge). A network with these maps is in the gauge of belief propagation (GaugedNetwork).
type gauge struct {
	factors *factors
	state   *State // the messages. If float64 cannot hold them, it is nil or has a contradiction
}

// newGauge runs belief propagation on a model and returns the gauge of its messages. If float64 cannot hold the messages, the error wraps
// sumproduct.ErrSpan, and the gauge is not nil: all its maps are identities. With any other error the gauge is nil.
func newGauge(ctx context.Context, m *factorgraph.Model, o Options) (*gauge, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("bp: %w", err)
	}
	unary, err := reparam.AbsorbUnary(m)
	if err != nil {
		return nil, err
	}
	factors, err := newFactors(ctx, m, unary.Weights, unary.Scale)
	if err != nil {
		return nil, err
	}
	state, err := Run(ctx, factors.expression, o)
	if err != nil && !errors.Is(err, sumproduct.ErrSpan) {
		return nil, err
	}
	return &gauge{factors: factors, state: state}, err
}

// mapsOf returns the maps of the legs of factor j, by position in its scope. The map of a leg is made of the two messages on it, one in
// each direction. A zero GivenMap is the identity. All maps are the identity if there are no messages: the factor was left out, or messages
// contradict each other. A map is the identity if its messages would make an ill-conditioned one. A symmetric factor gets one map on all
// legs if the messages on them are equal.
func (g *gauge) mapsOf(j int) []reparam.GivenMap {
	incidences := g.factors.incidences[j]
	maps := make([]reparam.GivenMap, len(incidences))
	isLeftOut := len(incidences) == 0 || incidences[0].table < 0
	if isLeftOut || g.state == nil || g.state.Contradiction >= 0 {
		return maps
	}

	// Make the map of every leg, and compare its messages with those of the first leg if the factor is symmetric.
	hasEqualMessages := isSymmetric(g.factors.model.Factors[j].Table)
	first := incidences[0]
	for k, leg := range incidences {
		m := g.state.ToVariable(leg.table, leg.scopePosition)
		v := g.state.ToFactor(leg.table, leg.scopePosition)
		if k > 0 && hasEqualMessages {
			hasEqualMessages = isClose(m, g.state.ToVariable(first.table, first.scopePosition)) &&
				isClose(v, g.state.ToFactor(first.table, first.scopePosition))
		}
		if given, ok := gaugeMap(m, v); ok {
			maps[k] = given
		}
	}

	if hasEqualMessages {
		for k := range maps {
			maps[k] = maps[0]
		}
	}
	return maps
}

// isSymmetric reports whether a tensor has a symmetric form, which it keeps only if the maps on all its legs are equal.
func isSymmetric(t tensor.Tensor) bool {
	switch t.(type) {
	case *tensor.Symmetric, *tensor.SymmetryCP:
		return true
	}
	return false
}

// isClose reports whether two messages have the same length and entries that differ by no more than messageTolerance. The difference is
// relative for entries above 1.
func isClose(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for x := range a {
		if !(math.Abs(a[x]-b[x]) <= messageTolerance*max(1, math.Abs(a[x]))) { // also for a NaN
			return false
		}
	}
	return true
}

// gaugeMap returns the map made of two messages m and v (Gauge), which it first scales to the same norm. ⟨m, v⟩ must be 1; ok is false if
// it is not, or if the condition number of the map is above maxGauge. With φ the angle between m and v the condition number is (1 + sin
// φ)/cos φ.
func gaugeMap(m, v []float64) (given reparam.GivenMap, ok bool) {
	normM, normV := math.Sqrt(scalarProduct(m, m)), math.Sqrt(scalarProduct(v, v))
	cos := 1 / (normM * normV)                             // since ⟨m, v⟩ = 1
	isNormalised := math.Abs(scalarProduct(m, v)-1) < 1e-6 // ToFactor makes it 1 but for rounding, or cannot and leaves it far from 1
	isWellConditioned := (1+math.Sqrt(max(0, 1-cos*cos)))/cos <= maxGauge
	if !isNormalised || !isWellConditioned {
		return reparam.GivenMap{}, false
	}

	factor := math.Sqrt(normV / normM)
	scaledM, scaledV := make([]float64, len(m)), make([]float64, len(v))
	for x := range m {
		scaledM[x] = m[x] * factor
		scaledV[x] = v[x] / factor
	}
	matrix, inverse := Gauge(scaledM, scaledV)
	return reparam.GivenMap{A: matrix, Inverse: inverse}, true
}
