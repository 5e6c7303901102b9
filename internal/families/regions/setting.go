package regions

import (
	"github.com/basetensor/basetensor/internal/network/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Named are the options of a request that regions read.
var Named = []setting.Setting{
	setting.New("regions.components", "0", "Components at most; 0: no limit.",
		setting.Int(func(s *query.Settings) *int { return &s.Components }, 0, 100_000), query.MethodRegions),
}
