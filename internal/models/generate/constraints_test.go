package generate_test

import (
	"errors"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestConstraintsLeaveAnAssignment(t *testing.T) {
	for seed := range uint64(10) {
		m, err := generate.Constraints(generate.ConstraintOptions{
			Variables:   8,
			Domain:      2 + int(seed%2),
			Arity:       2 + int(seed%2),
			Constraints: 30,
			Forbidden:   0.4,
			Strength:    1,
			Seed:        seed,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, sign := oracle.LogZ(m, factorgraph.Evidence{}); sign != 1 {
			t.Errorf("seed %d: Z has sign %d", seed, sign)
		}
		for _, f := range m.Factors {
			data := f.Table.(*tensor.Dense).Data
			zeros := 0
			for _, x := range data {
				if x == 0 {
					zeros++
				}
			}
			if zeros != int(0.4*float64(len(data))) {
				t.Fatalf("%d of %d entries are 0", zeros, len(data))
			}
		}
	}
	sat, err := generate.Constraints(generate.ConstraintOptions{Variables: 3, Constraints: 1})
	if err != nil {
		t.Fatal(err)
	}
	if lnZ, _ := oracle.LogZ(sat, factorgraph.Evidence{}); math.Abs(lnZ-math.Log(7)) > 1e-12 {
		t.Errorf("one clause: ln Z = %v, want ln 7", lnZ)
	}
}

func TestConstraintOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]generate.ConstraintOptions{
		"a constraint of all variables and more": {Variables: 2, Constraints: 1},
		"everything forbidden":                   {Variables: 4, Constraints: 1, Forbidden: 1},
	} {
		if _, err := generate.Constraints(o); !errors.Is(err, generate.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
