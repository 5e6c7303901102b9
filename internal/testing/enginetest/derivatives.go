package enginetest

import (
	"context"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// derivatives draws models of tables: Z is linear in every entry, so that its derivative is Z with the entry 1 less Z with 0.
func derivatives(t *testing.T, e Engine) {
	if e.Differentiate == nil {
		t.Skip("it has no derivatives")
	}
	asked, zeros := 0, 0
	e.each(t, 84, func(rng *rand.Rand, what string) error {
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 2 + rng.IntN(4), Factors: 1 + rng.IntN(5), MaxDomain: 3, MaxArity: 3, MaxStates: 1 << 6,
			Kinds: []modeltest.Kind{modeltest.Dense}, Constant: rng.IntN(2) == 0, Negative: rng.IntN(4) == 0, Zeros: 0.2,
		})
		var ev factorgraph.Evidence
		if rng.IntN(2) == 0 {
			ev = modeltest.Evidence(rng, m)
		}
		p := New(t, m, ev, reparam.Options{}, rng.Uint64())
		got, err := e.Differentiate(context.Background(), p, Want{Sliced: rng.IntN(2) == 0})
		if err != nil {
			return err
		}
		if oracle.Z(m, ev).Sign() == 0 {
			return nil // of ln Z there is no derivative
		}
		at := 0
		for f := range m.Factors {
			data := m.Factors[f].Table.(*tensor.Dense).Data
			for k := range data {
				if at >= len(got) {
					t.Fatalf("%s: %d derivatives", what, len(got))
				}
				was := data[k]
				data[k] = 1
				one := oracle.Z(m, ev)
				data[k] = 0
				none := oracle.Z(m, ev)
				data[k] = was
				want := new(big.Float).Sub(one, none)
				size := new(big.Float).Add(new(big.Float).Abs(one), new(big.Float).Abs(none))
				if off := oracle.ScaledError(got[at].Mant, got[at].Exp, want, size); off > 1e3*e.Tolerance {
					t.Errorf("%s: factor %d, entry %d = %v: %v, want %v", what, f, k, was, got[at], want)
				}
				asked++
				if was == 0 {
					zeros++
				}
				at++
			}
		}
		if at != len(got) {
			t.Errorf("%s: %d derivatives of %d numbers", what, len(got), at)
		}
		return nil
	})
	if asked < 100 || zeros < 10 {
		t.Errorf("%d derivatives, %d of them by zeros: too few to say anything", asked, zeros)
	}
}
