package modeltest

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// TestSmallModelsAreValid: drawn models and evidence are valid, and Z is the sum of Z under each value of variable 0.
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
		z, sum := oracle.Z(m, factorgraph.Evidence{}), new(big.Float).SetPrec(160)
		for x := range m.Domains[0] {
			sum.Add(sum, oracle.Z(m, factorgraph.Observe(map[int]int{0: x})))
		}
		relativeError := new(big.Float).SetPrec(160).Sub(z, sum)
		if z.Sign() != 0 && relativeError.Quo(relativeError, z).Cmp(big.NewFloat(1e-25)) > 0 {
			t.Fatalf("seed %d: Z %v, summed over evidence %v", seed, z, sum)
		}
	}
}
