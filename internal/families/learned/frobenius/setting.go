package frobenius

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/setting"
)

// Named are the options of a request that learning reads.
var Named = []setting.Setting{
	setting.New("learned.components", "4", "Components of the learned decomposition.",
		setting.Int(func(s *btn.Settings) *int { return &s.Components }, 1, 100_000), btn.MethodSymmetryCP),
	setting.New("learned.maps", "identity", "Invertible maps on the legs: identity, orthogonal (Hadamard, DCT-II), or bp, the messages of "+
		"belief propagation.",
		setting.Word(func(s *btn.Settings) *btn.MapKind { return &s.Maps }, btn.MapIdentity, btn.MapOrthogonal, btn.MapBP),
		btn.MethodSymmetryCP),
	setting.New("learned.learn-maps", "no", "yes: orthogonal maps are learned as well, by Procrustes steps.",
		setting.Yes(func(s *btn.Settings) *bool { return &s.LearnMaps }, "yes"), btn.MethodSymmetryCP),
	setting.New("learned.non-negative", "no", "yes: the weights of components stay at or above zero.",
		setting.Yes(func(s *btn.Settings) *bool { return &s.NonNegative }, "yes"), btn.MethodSymmetryCP),
	setting.New("learned.sweeps", "20", "Joint sweeps at most.",
		setting.Int(func(s *btn.Settings) *int { return &s.Sweeps }, 1, 1<<20), btn.MethodSymmetryCP),
	setting.New("learned.starts", "2", "Seeded starts; the best is kept.",
		setting.Int(func(s *btn.Settings) *int { return &s.Starts }, 1, 1<<20), btn.MethodSymmetryCP),
	setting.New("learned.flops", "5e10", "Work of learning at most: starts, then sweeps, then components are reduced to stay within it.",
		setting.Positive(func(s *btn.Settings) *float64 { return &s.LearnFlops }), btn.MethodSymmetryCP),
}
