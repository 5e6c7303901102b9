package trees

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Attempts draws count random trees and returns their plans, whatever they cost. Trees that could not be built are left out.
func Attempts(h contractionorder.Hypergraph, bond int, seed uint64, count int) []Plan {
	var out []Plan
	s := &search{ctx: context.Background(), h: h, form: newForm(h), memory: math.MaxInt64 / 64, rng: rand.New(rand.NewPCG(seed, 3))}
	s.options = SearchOptions{Bond: bond, Flops: math.MaxFloat64, Moves: math.MaxInt64}
	for range count {
		s.hasBest = false
		if s.tryRandomTree(); s.hasBest {
			out = append(out, s.best)
		}
	}
	return out
}
