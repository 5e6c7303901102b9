package aggregate

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestRoundingOfAllComponentsDecides: each says what it may be off; together they are exact, state it, or have no digit.
func TestRoundingOfAllComponentsDecides(t *testing.T) {
	for _, c := range []struct {
		name     string
		z        []float64
		rounding []float64 // below 0: a component that says nothing
		doubt    string
		exact    bool
		stated   float64
		failed   fault.Code
	}{
		{"exact", []float64{5, 3}, []float64{4e-10, 1e-10}, "", true, 0, ""},
		{"a component in doubt, all together not", []float64{1e-9, 8}, []float64{1e-10, 0}, "its digits cancel", true, 0, ""},
		{"each a little, together too much", []float64{4, 4}, []float64{6e-10, 6e-10}, "", false, 1.5e-10, ""},
		{"cancelled between components", []float64{1e6, 1 - 1e6}, []float64{1e-9, 1e-9}, "", false, 2e-9, ""},
		{"a digit is left", []float64{1e6, 1 - 1e6}, []float64{0.02, 0.02}, "", false, -math.Log1p(-0.04), ""},
		{"no digit", []float64{1e6, 1 - 1e6}, []float64{0.1, 0.1}, "", false, 0, fault.FailedEstimate},
		{"below 0 by rounding", []float64{1e6, -1 - 1e6}, []float64{0.6, 0.6}, "", false, 0, fault.FailedEstimate},
		{"below 0", []float64{1, -3}, []float64{1e-15, 1e-15}, "", false, 0, fault.BadInput},
		{"0 of terms", []float64{0}, []float64{1e-15}, "", false, 0, fault.Unsupported},
		{"one says nothing", []float64{5, 3}, []float64{1e-3, -1}, "", false, math.NaN(), ""},
	} {
		in := input(true, make([]float64, len(c.z)), c.z)
		for i, r := range c.rounding {
			in.Assignment.Plan.Estimates[0].Alpha[i] = scaled.One
			v := &in.Values[i].Value
			if bound := scaled.FromFloat(r); r >= 0 {
				v.Rounding = &bound
			}
			if v.Doubt = c.doubt; len(c.z) == 2 {
				v.Marginals = &btn.Marginals{Domains: []int{2}, Mant: []float64{v.Z.Float64() / 4, v.Z.Float64() * 3 / 4}}
			}
		}
		r := AddUp(in)
		if c.failed != "" {
			if r.Error == nil || r.Error.Code != c.failed || r.LogZ != nil {
				t.Errorf("%s: want %s: %s", c.name, c.failed, text(t, r.Result))
			}
			continue
		}
		if r.Error != nil || r.Exact != c.exact {
			t.Errorf("%s: %s", c.name, text(t, r.Result))
			continue
		}
		if r.Exact {
			if r.Uncertainty != nil || r.Bounds == nil || !(*r.Bounds.Upper-*r.LogZ >= 6e-11) {
				t.Errorf("%s: %s", c.name, text(t, r.Result))
			}
			continue
		}
		if math.IsNaN(c.stated) {
			if r.Uncertainty != nil {
				t.Errorf("%s: %s", c.name, text(t, r.Result))
			}
			continue
		}
		if r.Uncertainty == nil || math.Abs(*r.Uncertainty-c.stated) > 1e-12*(1+math.Abs(*r.LogZ))+1e-6*c.stated ||
			r.MarginalUncertainty == nil ||
			*r.Bounds.Lower != *r.LogZ-*r.Uncertainty || *r.Bounds.Upper != *r.LogZ+*r.Uncertainty || r.Bounds.Level != 1 {
			t.Errorf("%s: want %v: %s", c.name, c.stated, text(t, r.Result))
		}
		if w := strings.Join(r.Warnings, ";"); !strings.Contains(w, "not marked exact") || strings.Contains(w, "unknown quality") {
			t.Errorf("%s: %q", c.name, w)
		}
	}
}
