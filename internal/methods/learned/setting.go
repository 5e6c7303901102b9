package learned

import (
	"github.com/basetensor/basetensor/internal/methods/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Settings are the options of a request that learning reads.
var Settings = []setting.Setting{
	setting.New("learned.objective", "variance", "variance: of the stated estimate. frobenius: the paper's ‖B − B̃‖, with ρ and a "+
		"certificate; the default where maps are set, which it alone reads.",
		setting.Word(func(s *query.Settings) *query.Objective { return &s.Objective }, query.ObjectiveVariance, query.ObjectiveFrobenius),
		query.MethodSymmetryCP),
	setting.New("learned.components", "", "Components at most, by default 16 by the variance, 4 of frobenius.",
		setting.Int(func(s *query.Settings) *int { return &s.Components }, 1, 100_000), query.MethodSymmetryCP),
	setting.New("learned.maps", "identity", "Invertible maps on the legs: identity, orthogonal (Hadamard, DCT-II), learned (orthogonal), "+
		"or bp, the messages of belief propagation.",
		setting.Word(func(s *query.Settings) *query.MapKind { return &s.Maps },
			query.MapIdentity, query.MapOrthogonal, query.MapLearned, query.MapBP),
		query.MethodSymmetryCP),
}
