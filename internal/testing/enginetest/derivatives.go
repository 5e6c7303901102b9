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

// derivatives checks the property Derivatives on models of dense tables. Z is linear in every entry, so its derivative by an entry is Z
// with that entry 1 minus Z with that entry 0, both by enumeration.
func derivatives(t *testing.T, e Engine) {
	if e.Differentiate == nil {
		t.Skip("it has no derivatives")
	}
	maxError := 1e3 * e.Tolerance
	compared, zeros := 0, 0 // derivatives, and those by entries that are 0
	e.forEachRound(t, 84, func(rng *rand.Rand, what string) error {
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 2 + rng.IntN(4), Factors: 1 + rng.IntN(5), MaxDomain: 3, MaxArity: 3, MaxStates: 1 << 6,
			Kinds: []modeltest.Kind{modeltest.Dense}, Constant: rng.IntN(2) == 0, Negative: rng.IntN(4) == 0, Zeros: 0.2,
		})
		var ev factorgraph.Evidence
		if rng.IntN(2) == 0 {
			ev = modeltest.Evidence(rng, m)
		}
		p := NewProblem(t, m, ev, reparam.Options{}, rng.Uint64())
		got, err := e.Differentiate(context.Background(), p, Want{Sliced: rng.IntN(2) == 0})
		if err != nil {
			return err
		}
		if oracle.Z(m, ev).Sign() == 0 {
			return nil // ln Z has no derivative there
		}

		// got has the derivatives by all entries, factor after factor.
		index := 0
		for f := range m.Factors {
			data := m.Factors[f].Table.(*tensor.Dense).Data
			for k := range data {
				if index >= len(got) {
					t.Fatalf("%s: %d derivatives", what, len(got))
				}
				entry := data[k]
				data[k] = 1
				zWithOne := oracle.Z(m, ev)
				data[k] = 0
				zWithZero := oracle.Z(m, ev)
				data[k] = entry
				want := new(big.Float).Sub(zWithOne, zWithZero)
				size := new(big.Float).Add(new(big.Float).Abs(zWithOne), new(big.Float).Abs(zWithZero))
				if e := oracle.ScaledError(got[index].Mant, got[index].Exp, want, size); e > maxError {
					t.Errorf("%s: factor %d, entry %d = %v: %v, want %v", what, f, k, entry, got[index], want)
				}
				compared++
				if entry == 0 {
					zeros++
				}
				index++
			}
		}
		if index != len(got) {
			t.Errorf("%s: %d derivatives of %d numbers", what, len(got), index)
		}
		return nil
	})
	if compared < 100 || zeros < 10 {
		t.Errorf("%d derivatives, %d of them by zeros: too few to say anything", compared, zeros)
	}
}
