package sumproduct_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// TestValidate: one failing case per error, and its text.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *sumproduct.Expression)
		want   error
		code   fault.Code
		text   string
	}{
		{"nothing", func(*sumproduct.Expression) {}, nil, "", ""},
		{"dimension", func(e *sumproduct.Expression) { e.Dims[1] = 0 }, sumproduct.ErrExpression,
			fault.BadInput, "index 1 has dimension 0"},
		{"none", func(e *sumproduct.Expression) { e.Tables[1].Scope = []int{3} },
			sumproduct.ErrExpression, fault.BadInput,
			"table 1 names index 3, there are 3"},
		{"negative", func(e *sumproduct.Expression) { e.Tables[0].Scope[0] = -1 },
			sumproduct.ErrExpression, fault.BadInput,
			"table 0 names index -1"},
		{"twice", func(e *sumproduct.Expression) { e.Tables[0].Scope[0] = 1 },
			sumproduct.ErrExpression, fault.BadInput,
			"table 0 names index 1 twice"},
		{"few", func(e *sumproduct.Expression) { e.Tables[0].Data = nil }, sumproduct.ErrExpression,
			fault.BadInput, "table 0 has 0 entries"},
		{"many", func(e *sumproduct.Expression) { e.Tables[1].Data = make([]float64, 5) },
			sumproduct.ErrExpression,
			fault.BadInput, "table 1 has 5 entries"},
		{"huge", func(e *sumproduct.Expression) { e.Dims = slices.Repeat([]int{1 << 40}, 3) },
			sumproduct.ErrExpression,
			fault.BadInput, "needs another number"},
		{"exponents", func(e *sumproduct.Expression) { e.Tables[1].Exp = make([]int64, 4) },
			sumproduct.ErrExpression,
			fault.BadInput, "exponents of its own"},
		{"unfit", func(e *sumproduct.Expression) { e.Unfit = "far apart" }, sumproduct.ErrSpan,
			fault.Unsupported, "far apart"},
	} {
		e := &sumproduct.Expression{Dims: []int{2, 3, 4}, Tables: []sumproduct.Table{
			{Scope: []int{0, 1}, Data: make([]float64, 6)}, {Scope: []int{2},
				Data: make([]float64, 4)}, {Data: []float64{1}},
		}}
		c.change(e)
		err := e.Validate()
		if !errors.Is(err, c.want) || c.want != nil &&
			(fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if shape := e.ValidateShape(); (shape == nil) != (c.want == nil ||
			errors.Is(c.want, sumproduct.ErrSpan)) {
			t.Errorf("%s: the shape: %v", c.name, shape)
		}
	}
}

func TestFinite(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{3}, Tables: []sumproduct.Table{
		{
			Scope: []int{0},
			Data:  []float64{0, -math.MaxFloat64, math.SmallestNonzeroFloat64},
		}, {Scope: []int{0}, Data: []float64{0, 1, math.NaN()}},
		{Scope: []int{0}, Data: []float64{0, math.Inf(-1), 1}},
	}}
	for k, code := range []fault.Code{"", fault.BadInput, fault.Unsupported} {
		err := e.CheckFinite(k)
		if (err != nil) != (k > 0) || k > 0 &&
			(!errors.Is(err, sumproduct.ErrNotFinite) || fault.CodeOf(err) != code) {
			t.Errorf("table %d: %v", k, err)
		}
	}
}

// TestOffsets: against positions computed digit by digit,
// for axes that a table has and such that it has not.
func TestOffsets(t *testing.T) {
	dims, scope, axes := []int{2, 3, 1, 4, 2}, []int{3, 0, 2}, []int{0, 1, 2, 3}
	by := make([]int, len(dims))
	sumproduct.Strides(by, dims, scope)
	if !slices.Equal(by, []int{1, 0, 1, 2, 0}) {
		t.Fatalf("strides %v", by)
	}
	got := sumproduct.Offsets[int32](nil, dims, axes, by)
	var want []int32
	for a := range dims[0] {
		for range dims[1] {
			for c := range dims[2] {
				for d := range dims[3] {
					want = append(want, int32(d*dims[0]*dims[2]+a*dims[2]+c))
				}
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
}

// TestDepth: the error bound of an entry grows with every loss, and entries are looked at once.
func TestDepth(t *testing.T) {
	var d sumproduct.Depth
	d.Measure([]float64{0, 0.25, -8})
	d.Measure([]float64{1e-300})
	if d.Low != -2 || !d.Measured || d.Lost {
		t.Errorf("measured %+v", d)
	}
	d.AddLoss(-10)
	d.AddLoss(-20)
	d.AddLoss(-8)
	if !d.Lost || d.Off != -7 { // 2^-10 + 2^-20 ≤ 2^-9, and that with 2^-8 ≤ 2^-7
		t.Errorf("lost %+v", d)
	}
}
