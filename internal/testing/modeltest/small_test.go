package modeltest

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// TestSmallModelsAreValid, and summing over the values of an observed variable gives the whole.
func TestSmallModelsAreValid(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := Small(rng, SmallOptions{MinDomain: 1, MaxArity: 5, Zeros: 0.2, Negative: seed%2 == 0, Constant: true})
		if err := m.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ev := Evidence(rng, m)
		if err := ev.Validate(m); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		whole, part := oracle.Z(m, factorgraph.Evidence{}), new(big.Float).SetPrec(160)
		for x := range m.Domains[0] {
			part.Add(part, oracle.Z(m, factorgraph.Observe(map[int]int{0: x})))
		}
		diff := new(big.Float).SetPrec(160).Sub(whole, part)
		if whole.Sign() != 0 && diff.Quo(diff, whole).Cmp(big.NewFloat(1e-25)) > 0 {
			t.Fatalf("seed %d: Z %v, summed over evidence %v", seed, whole, part)
		}
	}
}
