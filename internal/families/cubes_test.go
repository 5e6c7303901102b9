package families_test

// The common suite on cubes of a search.

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/logic/compiler"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// cubesOf splits a problem's search, and contracts all cubes with a question.
func cubesOf(ctx context.Context, p *enginetest.Problem, ask btn.Ask, want btn.Want, memory int64) ([]btn.Value, error) {
	given := p.Seed%2 == 0
	net := p.Base
	if given {
		net = p.Network
	}
	cubes, err := logic.Split(ctx, net, logic.Options{Memory: memory, Work: 1}, compiler.SplitOptions{Most: 4, Again: 100})
	if err != nil {
		return nil, declined(err)
	}
	if ask == btn.AskMPE && !cubes.Functional {
		return nil, enginetest.ErrDeclined
	}
	split := &circuits.Split{Given: given, Functional: cubes.Functional, Order: cubes.Order, Work: 1 << 40, Bytes: 1 << 24}
	for _, c := range cubes.Literals {
		words := make([]int32, len(c))
		for i, l := range c {
			words[i] = int32(l)
		}
		split.Cubes = append(split.Cubes, words)
	}
	own := problem.New(p.Network, problem.Options{Memory: memory})
	own.Base, own.Evidence = p.Base, p.Evidence
	var values []btn.Value
	for at := range split.Cubes {
		v, err := contraction.Part(ctx, own, &circuits.Cube{Of: split, At: at, Ask: ask}, want)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// TestCubeEngine: cubes add up, the best assignment is the best of theirs, and draws are from all of them.
func TestCubeEngine(t *testing.T) {
	split := 0
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (out enginetest.Value, err error) {
			values, err := cubesOf(ctx, p, "", btn.Want{Marginals: w.Marginals, Joint: w.Joint}, w.Memory)
			if err != nil {
				return out, err
			}
			if len(values) > 1 {
				split++
			}
			cells := 1
			for _, v := range w.Joint {
				cells *= p.Model.Domains[v]
			}
			joint := make([]scaled.Number, cells)
			var marginals [][]scaled.Number
			for _, d := range p.Model.Domains {
				marginals = append(marginals, make([]scaled.Number, d))
			}
			for _, v := range values {
				out.Z = out.Z.Add(v.Z)
				if w.Marginals {
					at := 0
					for _, row := range marginals {
						for a := range row {
							row[a] = row[a].Add(scaled.Make(v.Marginals.Mant[at], v.Marginals.Exp))
							at++
						}
					}
				}
				if w.Joint != nil {
					addTo(joint, scaled.One, v.Joint)
				}
			}
			if out.Z.IsZero() {
				return out, nil
			}
			if w.Marginals {
				out.Marginals = enginetest.Normalised(out.Z, marginals)
			}
			if w.Joint != nil {
				out.Joint = enginetest.Normalised(out.Z, [][]scaled.Number{joint})[0]
			}
			return out, nil
		},
		Assign: func(
			ctx context.Context, p *enginetest.Problem, samples int, w enginetest.Want,
		) (out enginetest.Assigned, err error) {
			values, err := cubesOf(ctx, p, btn.AskMPE, btn.Want{}, w.Memory)
			if err != nil {
				return out, err
			}
			var best *btn.Found
			for _, v := range values {
				best = best.Or(v.Found)
			}
			if best == nil {
				return out, nil
			}
			out.Best, out.Ln = best.Values, best.Weight.LogAbs()

			if values, err = cubesOf(ctx, p, btn.AskSamples, btn.Want{Samples: samples, Seed: p.Seed}, w.Memory); err != nil {
				return out, err
			}
			var total scaled.Number
			for _, v := range values {
				if v.Drawn != nil {
					total = total.Add(v.Drawn.Weight)
				}
			}
			rng := rand.New(rand.NewPCG(p.Seed, 1))
			n := len(p.Model.Domains)
			for k := range samples {
				u := rng.Float64()
				var of *btn.Drawn
				for _, v := range values {
					if v.Drawn == nil || u < 0 {
						continue
					}
					of = v.Drawn
					u -= v.Drawn.Weight.Div(total).Float64()
				}
				out.Drawn = append(out.Drawn, of.Values[k*n:][:n])
			}
			return out, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Signs:       "circuits have numbers of at least 0",
			enginetest.Maps:        "circuits are of networks without maps",
			enginetest.Expressions: "parts are of networks",
			enginetest.Slices:      "cubes are in the place of slices: all of them are added up here",
			enginetest.Threads:     "a search runs in one goroutine",
		},
	})
	if split < 50 {
		t.Errorf("%d problems were split", split)
	}
}

// TestCubeWithoutCircuit: what needs a circuit is refused where that is larger than allowed, and Z is not.
func TestCubeWithoutCircuit(t *testing.T) {
	p := clausesProblem(t)
	split := &circuits.Split{Functional: true, Work: 1 << 30, Bytes: 1, Cubes: [][]int32{{}}}
	own := problem.New(p.Network, problem.Options{})
	whole, err := contraction.Part(t.Context(), own, &circuits.Cube{Of: split}, btn.Want{})
	if err != nil || whole.Z.IsZero() {
		t.Fatalf("%v, %v", whole.Z, err)
	}
	for _, c := range []struct {
		ask  btn.Ask
		want btn.Want
	}{
		{"", btn.Want{Marginals: true}},
		{"", btn.Want{Joint: []int{0, 1}}},
		{btn.AskMPE, btn.Want{}},
		{btn.AskSamples, btn.Want{Samples: 3}},
	} {
		if _, err := contraction.Part(t.Context(), own, &circuits.Cube{Of: split, Ask: c.ask}, c.want); fault.CodeOf(err) != fault.OverBudget {
			t.Errorf("%q, %+v: %v", c.ask, c.want, err)
		}
	}
}
