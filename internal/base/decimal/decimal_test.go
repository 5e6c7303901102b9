package decimal

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0": 0, "0e-400": 0, "0.000e999": 0, "+.5": 0.5, "2.5E+2": 250, "1e-307": 1e-307, "1.7976931348623157e308": math.MaxFloat64,
		"2.2250738585072014e-308":                 0x1p-1022,
		"4.9406564584124654e-324":                 5e-324, // 2^-1074 to 17 digits
		"-4.9406564584124654e-324":                -5e-324,
		"0." + strings.Repeat("0", 400) + "1e401": 1,
	} {
		if v, err := Parse(text); err != nil || v != want || math.Signbit(v) && v == 0 {
			t.Errorf("%.50s: %v, %v, want %v", text, v, err, want)
		}
	}
	for text, want := range map[string]error{
		"": ErrSyntax, "half": ErrSyntax, "0x1p-2": ErrSyntax, "1_0": ErrSyntax, "0.5.5": ErrSyntax, "1e": ErrSyntax,
		"NaN": ErrNotFinite, "-inf": ErrNotFinite, "Infinity": ErrNotFinite,
		"1e309": ErrRange, "-1e999": ErrRange, "1e-400": ErrRange, "-1e-324": ErrRange, "5e-324": ErrRange, "1e-310": ErrRange,
		"0." + strings.Repeat("0", 400) + "1": ErrRange, "1e-99999999999999999999": ErrRange,
		"1" + strings.Repeat("0", Longest): ErrRange, "0." + strings.Repeat("0", Longest): ErrSyntax,
	} {
		if v, err := Parse(text); !errors.Is(err, want) || v != 0 {
			t.Errorf("%.50s: %v, %v, want %v", text, v, err, want)
		}
	}
}

// TestParseHoldsEveryDigit: by exact arithmetic a number is read to half a unit of the last of 53 bits; a written number is read with
// the same bits.
func TestParseHoldsEveryDigit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		v := math.Float64frombits(rng.Uint64())
		if rng.IntN(2) == 0 {
			v = math.Float64frombits(rng.Uint64N(1 << 53)) // about 2^-1022
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if back, err := Parse(string(Append(nil, v))); err != nil || back != v {
			t.Fatalf("%x: %s is read as %x, %v", v, Append(nil, v), back, err)
		}
		text := new(big.Float).SetFloat64(v).Text('e', rng.IntN(20))
		read, err := Parse(text)
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatal(text)
		}
		off := new(big.Rat)
		if f := new(big.Rat).SetFloat64(read); err == nil && f != nil {
			off.Sub(f, exact).Abs(off)
		}
		most := new(big.Rat).Mul(new(big.Rat).Abs(exact), new(big.Rat).SetFloat64(0x1p-53))
		if err == nil && off.Cmp(most) > 0 {
			t.Fatalf("%s is read as %v", text, read)
		}
		if err != nil && math.Abs(v) > 2.3e-308 && math.Abs(v) < 1e308 {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func TestJSON(t *testing.T) {
	var n []Number
	if err := json.Unmarshal([]byte(`[0.5, 0, -2e3]`), &n); err != nil || n[0] != 0.5 || n[1] != 0 || n[2] != -2000 {
		t.Errorf("%v, %v", n, err)
	}
	for _, text := range []string{"[1e-400]", "[1e-310]", "[1e400]", `["1"]`} {
		if err := json.Unmarshal([]byte(text), &n); err == nil {
			t.Errorf("%s: %v", text, n)
		}
	}
	for want, f := range map[string]Floats{
		"[0,0.5,1e-7]":                  {0, 0.5, 1e-7},
		"[0,4.9406564584124654e-324,2]": {0, 5e-324, 2},
		"null":                          nil,
		"[]":                            {},
	} {
		if got, err := json.Marshal(f); err != nil || string(got) != want {
			t.Errorf("%v: %s, %v, want %s", f, got, err, want)
		}
	}
	if got, err := json.Marshal(Floats{5e-324, math.NaN()}); err == nil {
		t.Errorf("%s, %v", got, err)
	}
}
