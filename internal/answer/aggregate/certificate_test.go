package aggregate

import (
	"math"
	"testing"
)

func TestCertificateInterval(t *testing.T) {
	const huge = 1e6 // nats, far beyond float64's e^709
	for _, c := range []struct {
		name             string
		lnZ, lnBound     float64
		lnLower, lnUpper float64 // NaN: no lower end
	}{
		{"5 ± 2", math.Log(5), math.Log(2), math.Log(3), math.Log(7)},
		{"2 ± 5", math.Log(2), math.Log(5), math.NaN(), math.Log(7)},
		{
			"5 ± 2, times e^1e6", huge + math.Log(5), huge + math.Log(2), huge + math.Log(3),
			huge + math.Log(7),
		},
		{
			"5 ± 2, times e^-1e6", -huge + math.Log(5), -huge + math.Log(2), -huge + math.Log(3),
			-huge + math.Log(7),
		},
		{"bound reaches Z", 3, 3, math.NaN(), 3 + math.Ln2},
		{"bound just below Z", 0, -1e-9, math.Log(1e-9 - 5e-19), math.Ln2 - 5e-10},
		{"bound far below Z", 10, -700, 10, 10},
		{"bound far above Z", -700, 10, math.NaN(), 10},
	} {
		got := certificate(c.lnZ, c.lnBound-12, 12, 0)
		tolerance := 1e-14 * (10 + math.Abs(c.lnUpper)) // lnBound − 12 + 12 is rounded as well
		if c.name == "bound just below Z" {
			tolerance = 1e-5 // Z − bound has six digits left of what is rounded here
		}
		if got == nil || math.Abs(got.LnUpper-c.lnUpper) > tolerance ||
			math.Abs(got.LnBound-c.lnBound) > tolerance {
			t.Errorf("%s: %+v, want an upper end of %v", c.name, got, c.lnUpper)
			continue
		}
		switch {
		case math.IsNaN(c.lnLower) != (got.LnLower == nil):
			t.Errorf("%s: lower end %v, want %v", c.name, got.LnLower, c.lnLower)
		case got.LnLower != nil && math.Abs(*got.LnLower-c.lnLower) > tolerance:
			t.Errorf("%s: lower end %v, want %v", c.name, *got.LnLower, c.lnLower)
		}
	}
	// Eight digits cancelled: five of Z̃ are left, whatever B̃ is worth.
	if c := certificate(3, -700, 0, 8); c.LnLower == nil || math.Abs(c.LnUpper-3-1e-5) > 1e-9 || math.Abs(3-*c.LnLower-1e-5) > 1e-9 {
		t.Errorf("eight digits: %+v", c)
	}
	if c := certificate(3, -700, 0, 14); c.LnLower != nil {
		t.Errorf("no digit is left: %+v", c)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if c := certificate(1, bad, 0, 0); c != nil {
			t.Errorf("a bound of %v nats gives %+v, want none", bad, c)
		}
	}
}
