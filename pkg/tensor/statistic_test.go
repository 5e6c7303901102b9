package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestExpSquare: every entry is e^{λ s²/2}, of any size and sign of s, whose exponent is right to 1e-15 of itself.
func TestExpSquare(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 1))
	for round := range 60 {
		lambda := math.Exp(4 * r.NormFloat64())
		if round == 0 {
			lambda = 0
		}
		v := make([][]float64, 1+r.IntN(5))
		scale := 22 * r.Float64() / math.Sqrt(max(lambda, 1e-9)) / float64(len(v))
		for l := range v {
			v[l] = make([]float64, 1+r.IntN(4))
			for x := range v[l] {
				v[l][x] = scale * (2*r.Float64() - 0.5)
			}
		}
		c, err := tensor.ExpSquare(lambda, v)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]int, len(v))
		for {
			s := 0.0
			for l, a := range x {
				s += v[l][a]
			}
			want := lambda * s * s / 2
			if got := oracle.Ln(oracle.Entry(c, x)); math.Abs(got-want) > 1e-13*(1+want) {
				t.Fatalf("λ = %v, %v at %v: ln %v, not %v", lambda, v, x, got, want)
			}
			l := 0
			for ; l < len(x); l++ {
				if x[l]++; x[l] < len(v[l]) {
					break
				}
				x[l] = 0
			}
			if l == len(x) {
				break
			}
		}
	}
}

// TestExpSquareRefuses what has no decomposition, or a large one.
func TestExpSquareRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		lambda float64
		v      [][]float64
		code   fault.Code
	}{
		"a negative weight": {-1, [][]float64{{0, 1}}, fault.BadInput},
		"no number":         {math.NaN(), [][]float64{{0, 1}}, fault.BadInput},
		"nothing":           {1, nil, fault.BadInput},
		"no value":          {1, [][]float64{{0, 1}, {}}, fault.BadInput},
		"infinite":          {1, [][]float64{{0, math.Inf(1)}}, fault.BadInput},
		"NaN":               {1, [][]float64{{math.NaN()}}, fault.BadInput},
		"far apart":         {1, [][]float64{{0, 1e9}}, fault.OverBudget},
		"beyond float64":    {1, [][]float64{{0, 60}}, fault.BadInput},
		"overflow":          {1e300, [][]float64{{0, 1e300}}, fault.OverBudget},
	} {
		if got, err := tensor.ExpSquare(c.lambda, c.v); got != nil || err == nil || fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}
