package truth

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestFamiliesAgainstEnumeration draws small members of each family: Z and marginals by the structure are those by enumeration.
func TestFamiliesAgainstEnumeration(t *testing.T) {
	tried := map[string]int{} // members compared, by family
	for i := range uint64(1000) {
		d := newDrawer(rand.New(rand.NewPCG(i, 5)), []modeltest.Profile{modeltest.Wild, modeltest.Tame}[i%2])
		d.isSmall = true
		family := Families[i/2%uint64(len(Families))]
		if tried[family] >= 12 {
			continue
		}
		c := &Case{}
		got := d.drawFamily(family, c)
		if n, err := tensor.Size(c.Model.Domains); err != nil || n > 1<<12 {
			continue // too large to be enumerated
		}
		tried[family]++
		want := Solve(c.Model, c.Queries)[0]
		hasSameSign := got.Z.Sign() == want.Z.Sign()
		if !hasSameSign || want.Z.Sign() > 0 && math.Abs(got.Z.LnOver(want.Z)) > 1e-30 {
			t.Errorf("%s %d: ln Z %v, want %v", family, i, got.LnZ, want.LnZ)
		}
		for v := range got.Marginals {
			for a, p := range got.Marginals[v] {
				if math.Abs(p-want.Marginals[v][a]) > 1e-15 {
					t.Errorf("%s %d: P(x_%d = %d) = %v, want %v", family, i, v, a, p, want.Marginals[v][a])
				}
			}
		}
	}
	for _, family := range Families {
		if tried[family] < 5 {
			t.Errorf("%s: only %d small enough", family, tried[family])
		}
	}
}
