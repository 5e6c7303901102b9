package search

import (
	"github.com/basetensor/basetensor/internal/network/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Named are the options of a request that a search reads.
var Named = []setting.Setting{
	setting.New("search.cubes", "0", "Cubes of a search for the most probable assignment, for as many contract-workers; 0: it is whole.",
		setting.Int(func(s *query.Settings) *int { return &s.Components }, 0, MostCubes), query.MethodAuto),
}
