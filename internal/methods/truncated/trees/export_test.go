package trees

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Attempts returns the plans of count random trees, whatever they cost.
func Attempts(h contractionorder.Hypergraph, bond int, seed uint64, count int) []Plan {
	var out []Plan
	s := &search{ctx: context.Background(), h: h, f: newForm(h), memory: math.MaxInt64 / 64, rng: rand.New(rand.NewPCG(seed, 3))}
	s.o = SearchOptions{Bond: bond, Flops: math.MaxFloat64, Moves: math.MaxInt64}
	for range count {
		s.found = false
		if s.attempt(); s.found {
			out = append(out, s.best)
		}
	}
	return out
}
