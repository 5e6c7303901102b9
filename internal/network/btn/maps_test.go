package btn_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

func maxDeviation(a, b []float64, d int) float64 { // of a·b from the identity
	worst := 0.0
	for i := range d {
		for j := range d {
			dot := 0.0
			for k := range d {
				dot += a[i*d+k] * b[k*d+j]
			}
			if i == j {
				dot--
			}
			worst = max(worst, math.Abs(dot))
		}
	}
	return worst
}

func TestOrthogonalMaps(t *testing.T) {
	for _, d := range []int{2, 3, 4, 5, 7, 16, 61, 128} {
		m := btn.Orthogonal(d)
		inv, err := m.Inverse(d)
		if err != nil {
			t.Fatalf("dimension %d: %v", d, err)
		}
		if dev := maxDeviation(m.A, inv, d); dev > 1e-14 {
			t.Errorf("dimension %d: A·A⁻¹ is off the identity by %g", d, dev)
		}
		for x := range d { // column 0 is constant
			if math.Abs(m.A[x*d]-1/math.Sqrt(float64(d))) > 1e-15 {
				t.Errorf("dimension %d: entry (%d, 0) is %v", d, x, m.A[x*d])
			}
		}
	}
	if m := btn.Orthogonal(1); m.A != nil || m.Kind != query.MapIdentity {
		t.Errorf("dimension 1: %+v", m)
	}
	h, dct := btn.Hadamard(), btn.DCT(2)
	for k := range 4 {
		if math.Abs(h.A[k]-dct.A[k]) > 1e-15 {
			t.Errorf("DCT of dimension 2, entry %d: %v, Hadamard has %v", k, dct.A[k], h.A[k])
		}
	}
	// DCT-II of dimension 3 from its definition.
	want := []float64{
		1 / math.Sqrt(3), 1 / math.Sqrt(2), 1 / math.Sqrt(6),
		1 / math.Sqrt(3), 0, -2 / math.Sqrt(6),
		1 / math.Sqrt(3), -1 / math.Sqrt(2), 1 / math.Sqrt(6),
	}
	for k, got := range btn.DCT(3).A {
		if math.Abs(got-want[k]) > 1e-15 {
			t.Errorf("DCT of dimension 3, entry %d: %v, want %v", k, got, want[k])
		}
	}
}

func TestMapInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	for range 50 {
		d := 1 + rng.IntN(6)
		a := make([]float64, d*d)
		for k := range a {
			a[k] = rng.Float64()*2 - 1
			if k%(d+1) == 0 {
				a[k] += 3
			}
		}
		inv, err := btn.Map{Kind: query.MapGiven, A: a}.Inverse(d)
		if err != nil {
			t.Fatalf("%v: %v", a, err)
		}
		if dev := maxDeviation(a, inv, d); dev > 1e-12 {
			t.Errorf("%v: A·A⁻¹ is off by %g", a, dev)
		}
	}
	if inv, err := btn.Identity().Inverse(4); inv != nil || err != nil {
		t.Errorf("identity: %v, %v", inv, err)
	}
}

func TestMapInverseRefuses(t *testing.T) {
	given := func(a ...float64) btn.Map { return btn.Map{Kind: query.MapGiven, A: a} }
	for _, c := range []struct {
		name string
		m    btn.Map
		is   error
		want string
	}{
		{"singular", given(1, 2, 2, 4), btn.ErrIllConditioned, "condition number"},
		{"zero", given(0, 0, 0, 0), btn.ErrIllConditioned, "condition number +Inf"},
		{"ill-conditioned", given(1, 0, 0, 1e-9), btn.ErrIllConditioned,
			"condition number 1e+09, at most 1e+08"},
		{"size", given(1, 2, 3), btn.ErrMap, "3 entries, dimension 2"},
		{"entry", given(1, 0, math.NaN(), 1), btn.ErrMap, "entry (1, 0) is NaN"},
		{"not orthogonal", btn.Map{Kind: query.MapOrthogonal, A: []float64{1, 0.5, 0, 1}}, btn.ErrMap,
			"columns 0 and 1 are off by 0.5"},
	} {
		_, err := c.m.Inverse(2)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := given(1, 0, 0, 2e-8).Inverse(2); err != nil {
		t.Errorf("a condition number of 5e7 is allowed: %v", err)
	}
}
