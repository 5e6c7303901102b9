package reparam

// Maps "bp": the messages of belief propagation as a gauge.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// maxGauge is the largest condition number of a map made of messages. It is (1 + sin φ)/cos φ, φ the angle between the two
// messages: near a right angle where the factor all but excludes what the rest of the model prefers.
const maxGauge = 1e4

// sameMessages is how far the messages of a symmetric factor's legs may differ (entries of normalised ones) to be taken
// as one, so that the factor keeps its form: rounding, well above it.
const sameMessages = 1e-10

// gauge holds the maps of every incidence, made of messages.
type gauge struct {
	net   *messageNetwork
	state *bp.State // nil where float64 cannot hold the messages
}

// Messages runs belief propagation on m, without evidence, and returns its state, whose LnZ is the Bethe value. Factors of every
// form take part through trees of tables, except symmetric and symmetry-CP ones whose chains of counters have more than 2^24
// entries. Complete says that none was left out. Errors: as Build and bp.Run.
func Messages(ctx context.Context, m *factorgraph.Model, o bp.Options) (state *bp.State, complete bool, err error) {
	net, err := Build(ctx, m, Options{})
	if err != nil {
		return nil, false, err
	}
	weights := make([][]float64, len(m.Domains))
	for i, v := range net.Variables {
		weights[i] = net.Links[v.Link].T.(*tensor.CP).Weights
	}
	g, err := newGauge(ctx, m, weights, net.Scale, o)
	if err != nil {
		return nil, false, err
	}
	for _, at := range g.net.at {
		if len(at) > 0 && at[0].table < 0 {
			return g.state, false, nil
		}
	}
	return g.state, true, nil
}

func newGauge(ctx context.Context, m *factorgraph.Model, weights [][]float64, scale scaled.Number, o bp.Options) (*gauge, error) {
	net, err := newMessageNetwork(ctx, m, weights, scale)
	if err != nil {
		return nil, err
	}
	state, err := bp.Run(ctx, net.e, o)
	return &gauge{net: net, state: state}, err
}

// maps returns the maps of factor j's incidences: the identity where there are no messages (the factor was left out, or
// messages contradict each other) or where they would make an ill-conditioned map.
func (g *gauge) maps(j int, symmetric bool) []mapPair {
	out := make([]mapPair, len(g.net.at[j]))
	for k := range out {
		out[k] = mapPair{m: btn.Identity()}
	}
	if len(out) == 0 || g.net.at[j][0].table < 0 || g.state == nil || g.state.Contradiction >= 0 {
		return out
	}
	same := symmetric
	for k, at := range g.net.at[j] {
		m, v := g.state.ToVariable(at.table, at.k), g.state.ToFactor(at.table, at.k)
		if k > 0 && same {
			first := g.net.at[j][0]
			same = close(m, g.state.ToVariable(first.table, first.k)) && close(v, g.state.ToFactor(first.table, first.k))
		}
		if p, ok := gaugePair(m, v); ok {
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

// gaugePair returns bp.Gauge of the messages scaled to one norm; false for a condition number above maxGauge.
func gaugePair(m, v []float64) (mapPair, bool) {
	a, b := norm(m), norm(v)
	cos := 1 / (a * b) // ⟨m, v⟩ = 1
	if dot := inner(m, v); !(math.Abs(dot-1) < 1e-6) || !((1+math.Sqrt(max(0, 1-cos*cos)))/cos <= maxGauge) {
		return mapPair{}, false
	}
	by := math.Sqrt(b / a)
	left, right := make([]float64, len(m)), make([]float64, len(v))
	for x := range m {
		left[x], right[x] = m[x]*by, v[x]/by
	}
	matrix, inverse := bp.Gauge(left, right)
	return mapPair{m: btn.Map{Kind: btn.MapBP, A: matrix}, inverse: inverse}, true
}

func norm(x []float64) float64 { return math.Sqrt(inner(x, x)) }

func inner(a, b []float64) float64 {
	sum := 0.0
	for x := range a {
		sum += a[x] * b[x]
	}
	return sum
}
