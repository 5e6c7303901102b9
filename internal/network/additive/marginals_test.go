package additive

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func weights(xs ...float64) []scaled.Number {
	out := make([]scaled.Number, len(xs))
	for i, x := range xs {
		out[i] = scaled.FromFloat(x)
	}
	return out
}

func TestMarginalsAddUpOverComponents(t *testing.T) {
	// Two components far outside float64's range: M = (3, 1 | 1, 2, 1)·2^5000 and twice (1, 1 | 2,
	// 0, 0)·2^4999.
	domains := []int{2, 3}
	parts := []*btn.Marginals{
		{Domains: domains, Mant: []float64{3, 1, 1, 2, 1}, Exp: 5000},
		{Domains: domains, Mant: []float64{1, 1, 2, 0, 0}, Exp: 4999},
	}
	p, warning, err := Marginals(weights(1, 2), parts, nil)
	if err != nil || warning != "" {
		t.Fatal(err, warning)
	}
	want := [][]float64{{4. / 6, 2. / 6}, {3. / 6, 2. / 6, 1. / 6}}
	for v := range want {
		for a := range want[v] {
			if math.Abs(p[v][a]-want[v][a]) > 1e-15 {
				t.Errorf("P(x_%d = %d) = %v, want %v", v, a, p[v][a], want[v][a])
			}
		}
	}
}

func TestMarginalsThatAreNoneSayWhy(t *testing.T) {
	one := func(mant ...float64) []*btn.Marginals {
		return []*btn.Marginals{{Domains: []int{2}, Mant: mant}}
	}
	if p, warning, err := Marginals(weights(1), one(-1, 3), nil); p != nil || err != nil ||
		!strings.Contains(warning, "P(x_0 = 0) is -0.5") {
		t.Errorf("negative: %v %q %v", p, warning, err)
	}
	if p, warning, err := Marginals(weights(1), one(0, 0), nil); p != nil || err != nil ||
		!strings.Contains(warning, "no positive total") {
		t.Errorf("empty: %v %q %v", p, warning, err)
	}
	if p, _, err := Marginals(weights(1), one(-1e-12, 1), nil); err != nil ||
		p[0][0] != 0 || p[0][1] != 1 {
		t.Errorf("rounding below 0: %v %v", p, err)
	}
	if _, _, err := Marginals(weights(1, 1), append(one(1, 1), nil), nil); err == nil {
		t.Error("a component without marginals passed")
	}
	if _, _, err := Marginals(
		weights(1, 1),
		append(one(1, 1), &btn.Marginals{Domains: []int{3}, Mant: make([]float64, 3)}), nil,
	); err == nil {
		t.Error("components of two shapes passed")
	}
	if p, warning, err := Marginals(weights(1), one(-1, 3), []int{7}); p != nil || err != nil ||
		!strings.Contains(warning, "P(x_7 = 0) is -0.5") {
		t.Errorf("of a target: %v %q %v", p, warning, err)
	}
	if _, _, err := Marginals(weights(1), one(1, 1), []int{7, 8}); err == nil {
		t.Error("the marginals of one variable passed for two")
	}
	if p, warning, err := Marginals(weights(1), []*btn.Marginals{nil}, nil); p != nil ||
		warning != "" || err != nil {
		t.Errorf("nobody asked: %v %q %v", p, warning, err)
	}
}

func TestJointMarginalsAddUpOverComponents(t *testing.T) {
	parts := []*btn.Marginals{{Domains: []int{2, 2}, Mant: []float64{3, 1, 0, 2}, Exp: 5000},
		{Domains: []int{2, 2}, Mant: []float64{1, 1, 2, 0}, Exp: 4999}}
	p, shape, warning, err := Joint(weights(1, 2), parts, []int{7, 4})
	if err != nil || warning != "" || len(shape) != 2 || shape[1] != 2 {
		t.Fatal(p, warning, err)
	}
	for x, want := range []float64{0.4, 0.2, 0.2, 0.2} {
		if math.Abs(p[x]-want) > 1e-15 {
			t.Errorf("cell %d is %v, want %v", x, p[x], want)
		}
	}
	if p, _, warning, err := Joint(weights(1, 1), parts, nil); p != nil ||
		warning != "" || err != nil {
		t.Errorf("nobody asked: %v %q %v", p, warning, err)
	}
	negative := []*btn.Marginals{{Domains: []int{2}, Mant: []float64{-1, 3}}}
	if p, _, warning, err := Joint(weights(1), negative, []int{0}); p != nil || err != nil ||
		!strings.Contains(warning, "cell 0 is -0.5") {
		t.Errorf("negative: %v %q %v", p, warning, err)
	}
	for name, broken := range map[string][]*btn.Marginals{
		"missing": {
			parts[0], nil}, "none": {nil, nil}, "shape": {parts[0],
			{Domains: []int{4}, Mant: make([]float64, 4)},
		},
		"short": {{
			Domains: []int{2, 2},
			Mant:    make([]float64, 3),
		}}, "huge": {{Domains: []int{1 << 40, 1 << 40}}}, "variables": {{Domains: []int{4}, Mant: make([]float64, 4)}},
	} {
		if p, _, _, err := Joint(weights(1, 1)[:len(broken)], broken, []int{7, 4}); err == nil {
			t.Errorf("%s: %v", name, p)
		}
	}
}
