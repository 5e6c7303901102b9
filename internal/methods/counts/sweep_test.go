package counts_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// overlapping draws two symmetric factors that share variables, one of them of up to three levels, in fields. Numbers are few, so
// that many assignments have the same weight.
func overlapping(rng *rand.Rand) *factorgraph.Model {
	n := 4 + rng.IntN(4)
	m := &factorgraph.Model{}
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	for v := range n {
		d := 2 + rng.IntN(2)
		m.Domains = append(m.Domains, d)
		field := make([]float64, d)
		for x := range field {
			field[x] = pick(0, 0.5, 1, 1, 2, 3, 0.7)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{d}, Data: field}})
	}
	for _, most := range []int{2, 3} {
		scope := rng.Perm(n)[:2+rng.IntN(n-1)]
		s := &tensor.Symmetric{Levels: countspace.Levels{D: most}}
		for _, v := range scope {
			of := make([]uint8, m.Domains[v])
			for x := range of {
				of[x] = uint8(min(x, most-1))
			}
			s.Shape = append(s.Shape, m.Domains[v])
			s.Levels.Of = append(s.Levels.Of, of)
		}
		size := 1
		for _, side := range s.Levels.Shape() {
			size *= side
		}
		s.Values = scaled.NewVector(size)
		for k := range size {
			s.Values.Set(k, scaled.FromFloat(pick(0, 1, 1, 2, 4)))
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s})
	}
	return m
}

// inSeveral is the count space of all symmetric factors of a model under evidence.
func inSeveral(t *testing.T, m *factorgraph.Model, e factorgraph.Evidence, memory int64) (*counts.Form, *btn.Network) {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err == nil {
		net, err = net.Condition(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	part := &counts.Counts{}
	for c, core := range net.Cores {
		if counts.AsSymmetricTerms(core.T) != nil {
			part.Cores, part.Terms = append(part.Cores, c), append(part.Terms, 0)
		}
	}
	f, err := counts.NewForm(context.Background(), net, part, counts.Options{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	return f, net
}

// TestSeveralCounts: the most probable assignment, whether it is the only one, Z of the draws and every pair of values among them, of
// symmetric factors that overlap and of several levels, against all assignments.
func TestSeveralCounts(t *testing.T) {
	const draws = 1000
	tied, alone, none := 0, 0, 0
	for round := range 150 {
		rng := rand.New(rand.NewPCG(77, uint64(round)))
		m := overlapping(rng)
		var e factorgraph.Evidence
		if round%2 == 0 {
			e = modeltest.Evidence(rng, m)
		}
		f, net := inSeveral(t, m, e, 1<<30)
		if !f.CanFind(btn.AskMPE) || !f.CanFind(btn.AskSamples) {
			t.Fatalf("round %d: not found in count space", round)
		}
		got, err := f.MostProbable(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		a, values, err := f.Draw(context.Background(), draws, streams(uint64(round)))
		if err != nil {
			t.Fatal(err)
		}
		all, ln := allOf(m, e)
		top := slices.Max(ln)
		if math.IsInf(top, -1) {
			if none++; got != nil || values != nil {
				t.Errorf("round %d: assignments of an impossible model", round)
			}
			continue
		}
		var want []int
		ties, z := 0, 0.0
		for k, x := range ln {
			z += math.Exp(x)
			if x > top-1e-12 {
				if ties++; want == nil {
					want = all[k]
				}
			}
		}
		if ties == 1 {
			alone++
		} else {
			tied++
		}
		if !slices.Equal(got.Values, want) || got.Unique != (ties == 1) || math.Abs(got.Weight.Mul(net.Scale).LogAbs()-top) > 1e-12 {
			t.Errorf("round %d: %v, unique %t, ln %v; want %v, one of %d, %v",
				round, got.Values, got.Unique, got.Weight.Mul(net.Scale).LogAbs(), want, ties, top)
		}
		if off := a.Z.Mul(net.Scale).Float64()/z - 1; math.Abs(off) > 1e-12 {
			t.Errorf("round %d: Z is off by %.3g", round, off)
		}
		n := len(m.Domains)
		for v := range n {
			for u := range v {
				share, drawn := map[[2]int]float64{}, map[[2]int]float64{}
				for k, x := range all {
					share[[2]int{x[u], x[v]}] += math.Exp(ln[k]) / z
				}
				for k := range draws {
					drawn[[2]int{values[k*n+u], values[k*n+v]}]++
				}
				for pair, q := range share {
					if off := math.Abs(drawn[pair] - draws*q); off > 6*math.Sqrt(draws*q*(1-q))+1e-9 && off > 1 {
						t.Errorf("round %d: %d and %d are %v %v times in %d, with probability %v", round, u, v, pair, drawn[pair], draws, q)
					}
				}
			}
		}
	}
	if tied < 20 || alone < 20 || none < 4 {
		t.Errorf("%d rounds with ties, %d without, %d with Z = 0", tied, alone, none)
	}
}

// TestSweepsAreBounded: too little memory is refused, and a context that has ended is an error.
func TestSweepsAreBounded(t *testing.T) {
	m := overlapping(rand.New(rand.NewPCG(1, 1)))
	f, _ := inSeveral(t, m, factorgraph.Evidence{}, 256)
	if _, err := f.MostProbable(context.Background()); f.CanFind(btn.AskMPE) || fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("256 bytes: %v", err)
	}

	m = &factorgraph.Model{Domains: slices.Repeat([]int{3}, 60)}
	scope := make([]int, 60)
	levels := countspace.Levels{D: 3}
	for v := range scope {
		scope[v] = v
		levels.Of = append(levels.Of, []uint8{0, 1, 2})
	}
	s := &tensor.Symmetric{Shape: m.Domains, Levels: levels, Values: scaled.NewVector(61 * 61)}
	for k := range s.Values.Len() {
		s.Values.Set(k, scaled.One)
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s})
	f, _ = inSeveral(t, m, factorgraph.Evidence{}, 1<<30)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.MostProbable(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, _, err := f.Draw(ctx, 1, streams(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
