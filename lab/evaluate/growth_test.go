package evaluate

// Growth: estimates stage by stage, bonds; and models from files.

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

func small(t *testing.T) *factorgraph.Model {
	t.Helper()
	m, err := instance{family: grids, size: 4, strength: 1, attractive: true, seed: 3}.build()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStagedEndsWhereTheSystemDoes: the last of the answers stage by stage is the answer.
func TestStagedEndsWhereTheSystemDoes(t *testing.T) {
	m := small(t)
	s := query.Settings{Method: query.MethodRegions, Budget: 1e8}
	want, err := Settings("", s).Solve(t.Context(), m, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []Outcome
	if err := staged(t.Context(), m, s, func(_ string, _ float64, o Outcome) {
		got = append(got, o)
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) < 2 || got[len(got)-1].LnZ != want.LnZ || got[0].LnZ == want.LnZ {
		t.Errorf("%d answers %+v, the system says %+v", len(got), got, want)
	}
}

func TestBondsGrowToTheExactAnswer(t *testing.T) {
	m := small(t)
	want, _ := oracle.LogZ(m, factorgraph.Evidence{})
	for name, g := range map[string]func(context.Context, *truncated.Prepared) (contraction, error){
		"tree": alongOneTree, "sweep": sweeping,
	} {
		first, last, flops := math.NaN(), math.NaN(), 0.0
		err := bonded(t.Context(), m, []int{1, 2, 64}, g)(func(_ string, bond float64, o Outcome) {
			if bond == 1 {
				first = math.Abs(o.LnZ - want)
			}
			if o.Flops <= flops {
				t.Errorf("%s: flops fall to %g", name, o.Flops)
			}
			last, flops = math.Abs(o.LnZ-want), o.Flops
		})
		if err != nil || !(first > 1e-6) || !(last < 1e-10) {
			t.Errorf("%s: off by %g at bond 1, %g in the end (%v)", name, first, last, err)
		}
	}
}

func TestComponentsAreCounted(t *testing.T) {
	rows, err := compare(t.Context(), Options{}, []instance{{family: complete, size: 4, strength: 1}},
		symmetryCP([]int{1, 3}), false)
	if err != nil || len(rows) != 12 {
		t.Fatal(rows, err)
	}
	for k := 0; k < len(rows); k += 2 {
		if rows[k].Step != 1 || rows[k+1].Step != 3 || !(rows[k+1].Residual < rows[k].Residual) {
			t.Errorf("%s: ρ = %g with %g, %g with %g",
				rows[k].Method, rows[k].Residual, rows[k].Step, rows[k+1].Residual, rows[k+1].Step)
		}
	}
}
