package annealing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// switchedPull returns a model of n indices that are independent given a switch: uniform at its value 0, pulled to a random pattern at 1,
// which has a share of Z. It returns ln Z, known in closed form.
func switchedPull(n, values int, share float64) (e *sumproduct.Expression, lnZ float64) {
	r := rand.New(rand.NewPCG(uint64(n), uint64(values)))
	e = &sumproduct.Expression{Scale: scaled.One, Dims: append(slices.Repeat([]int{values}, n), 2)}
	wide := float64(n) * math.Log(float64(values))
	against := math.Exp(-7)
	weight := math.Exp((wide+math.Log(share/(1-share)))/float64(n)) / (1 + float64(values-1)*against)
	for i := range n {
		pull := slices.Repeat([]float64{1}, 2*values)
		for a := range values {
			pull[values+a] = weight * against
		}
		pull[values+r.IntN(values)] = weight
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{n, i}, Data: pull})
	}
	return e, wide - math.Log(1-share)
}

// TestChainsFromModesFindThem where chains from uniform draws do not, with two and three values: ln Z and the share of the
// pull are right.
func TestChainsFromModesFindThem(t *testing.T) {
	for _, values := range []int{2, 3} {
		for _, share := range []float64{0.1, 0.5, 0.9} {
			e, lnZ := switchedPull(40, values, share)
			m, err := New(e)
			if err != nil {
				t.Fatal(err)
			}
			w, err := m.Run(t.Context(), Path{Rungs: 100, Seed: 5, Modes: 1}, 0, 512, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			ln, _ := w.WithFirstStarts(1)
			if mean := floats.LnSum(w.Ln) - math.Log(512); math.Abs(mean-lnZ) > 0.1 {
				t.Errorf("%d values, %v of Z: ln Z %v, not %v; without %v", values, share, mean, lnZ, floats.LnSum(ln)-math.Log(512))
			}
			if without := floats.LnSum(ln) - math.Log(512); share > 0.4 && without > lnZ-0.3 {
				t.Errorf("%d values, %v of Z: %v of %v are found without modes", values, share, without, lnZ)
			}
			total := w.Share[40][0] + w.Share[40][1]
			if got := w.Share[40][1] / total; math.Abs(got-share) > 0.05 {
				t.Errorf("%d values, %v of Z: the pull has %v", values, share, got)
			}
		}
	}
}

// TestChainsFromGivenStarts: beside uniform draws, products that know the pull and others that are wrong leave ln Z and the share of the
// pull right.
func TestChainsFromGivenStarts(t *testing.T) {
	for _, values := range []int{2, 3} {
		e, lnZ := switchedPull(40, values, 0.7)
		pull, wrong := make([][]float64, 41), make([][]float64, 41)
		for i, d := range e.Dims {
			pull[i], wrong[i] = slices.Repeat([]float64{0.01}, d), slices.Repeat([]float64{0.02}, d)
			at := 1
			if i < 40 {
				at = slices.Index(e.Tables[i].Data[d:], slices.Max(e.Tables[i].Data[d:]))
			}
			pull[i][at], wrong[i][(at+1)%d] = 1-0.01*float64(d-1), 1-0.02*float64(d-1)
		}
		m, err := New(e)
		if err != nil {
			t.Fatal(err)
		}
		for name, given := range map[string][][][]float64{"one": {pull}, "two": {wrong, pull}} {
			w, err := m.Run(t.Context(), Path{Rungs: 100, Seed: 5, ExtraStarts: given}, 0, 512, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			ln, _ := w.WithFirstStarts(1)
			if without := floats.LnSum(ln) - math.Log(512); without > lnZ-0.3 {
				t.Errorf("%d values, %s: %v of %v are found without given starts", values, name, without, lnZ)
			}
			if mean := floats.LnSum(w.Ln) - math.Log(512); math.Abs(mean-lnZ) > 0.1 {
				t.Errorf("%d values, %s: ln Z %v, not %v", values, name, mean, lnZ)
			}
			if got := w.Share[40][1] / (w.Share[40][0] + w.Share[40][1]); math.Abs(got-0.7) > 0.05 {
				t.Errorf("%d values, %s: the pull has %v", values, name, got)
			}
		}
	}
}

// TestStartsThatDifferInTheSecond: a model that was asked for the starts a, b and then for a, c answers as a new model that is asked for
// a, c.
func TestStartsThatDifferInTheSecond(t *testing.T) {
	e := drawModel(rand.New(rand.NewPCG(4, 1)), []int{2, 2, 3, 2, 2}, ringScopes(5), 3, 0)
	product := func(firstValue float64) [][]float64 {
		p := make([][]float64, len(e.Dims))
		for i, d := range e.Dims {
			p[i] = slices.Repeat([]float64{(1 - firstValue) / float64(d-1)}, d)
			p[i][0] = firstValue
		}
		return p
	}
	a, b, c := product(0.5), product(0.9), product(0.1)
	run := func(m *Model, given ...[][]float64) []float64 {
		w, err := m.Run(t.Context(), Path{Rungs: 5, Seed: 3, ExtraStarts: given}, 0, 16, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		return w.Ln
	}
	models := make([]*Model, 2)
	for i := range models {
		var err error
		if models[i], err = New(e); err != nil {
			t.Fatal(err)
		}
	}
	withB := run(models[0], a, b)
	got, want := run(models[0], a, c), run(models[1], a, c)
	if !slices.Equal(got, want) {
		t.Errorf("weights %v after other starts, %v before any", got, want)
	}
	if slices.Equal(got, withB) {
		t.Error("the second start makes no difference")
	}
}

// TestAmong: the weights with the first starts alone agree with a path that has no others.
func TestAmong(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	tested := 0
	for range 20 {
		e := drawModel(r, []int{2, 2, 3, 2, 2}, ringScopes(5), 3, 0)
		m, err := New(e)
		if err != nil {
			t.Fatal(err)
		}
		p := Path{Rungs: 5, Seed: 3, FromBeliefs: true, Modes: 3}
		w, err := m.Run(t.Context(), p, 8, 24, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		for starts := 1; starts <= len(w.LnContributions)/len(w.Ln); starts++ {
			p.Modes = starts - 1
			few, err := m.Run(t.Context(), p, 8, 24, 1, true)
			if err != nil {
				t.Fatal(err)
			}
			ln, each := w.WithFirstStarts(starts)
			for c := range ln {
				if math.Abs(ln[c]-few.Ln[c]) > 1e-12*math.Abs(ln[c]) {
					t.Fatalf("%d starts, component %d: %v, not %v", starts, c, ln[c], few.Ln[c])
				}
			}
			if len(each) != len(few.LnContributions) {
				t.Fatalf("%d chains, not %d", len(each), len(few.LnContributions))
			}
			tested++
		}
	}
	if tested < 50 {
		t.Errorf("only %d numbers of starts", tested)
	}
}
