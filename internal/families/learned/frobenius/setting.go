package frobenius

import (
	"github.com/basetensor/basetensor/internal/network/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Named are the options of a request that learning reads.
var Named = []setting.Setting{
	setting.New("learned.objective", "variance", "variance: of the stated estimate. frobenius: the paper's ‖B − B̃‖, with ρ and a "+
		"certificate; the default where maps, learn-maps, non-negative, sweeps or starts are set, which it alone reads.",
		setting.Word(func(s *query.Settings) *query.Objective { return &s.Objective }, query.ObjectiveVariance, query.ObjectiveFrobenius),
		query.MethodSymmetryCP),
	setting.New("learned.components", "", "Components at most, by default 16 by the variance, 4 of frobenius.",
		setting.Int(func(s *query.Settings) *int { return &s.Components }, 1, 100_000), query.MethodSymmetryCP),
	setting.New("learned.maps", "identity", "Invertible maps on the legs: identity, orthogonal (Hadamard, DCT-II), or bp, the messages of "+
		"belief propagation.",
		setting.Word(func(s *query.Settings) *query.MapKind { return &s.Maps }, query.MapIdentity, query.MapOrthogonal, query.MapBP),
		query.MethodSymmetryCP),
	setting.New("learned.learn-maps", "no", "yes: orthogonal maps are learned as well, by Procrustes steps.",
		setting.Yes(func(s *query.Settings) *bool { return &s.LearnMaps }, "yes"), query.MethodSymmetryCP),
	setting.New("learned.non-negative", "no", "yes: the weights of components stay at or above zero.",
		setting.Yes(func(s *query.Settings) *bool { return &s.NonNegative }, "yes"), query.MethodSymmetryCP),
	setting.New("learned.sweeps", "", "Joint sweeps at most, by default 20.",
		setting.Int(func(s *query.Settings) *int { return &s.Sweeps }, 1, 1<<20), query.MethodSymmetryCP),
	setting.New("learned.starts", "", "Seeded starts, by default 2; the best is kept.",
		setting.Int(func(s *query.Settings) *int { return &s.Starts }, 1, 1<<20), query.MethodSymmetryCP),
	setting.New("learned.flops", "5e10", "Work of learning at most: of frobenius, starts, then sweeps, then components are reduced for it.",
		setting.Positive(func(s *query.Settings) *float64 { return &s.LearnFlops }), query.MethodSymmetryCP),
}
