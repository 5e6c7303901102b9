package plan

import (
	"github.com/basetensor/basetensor/internal/network/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Named are the options of a request that the choice between families reads.
var Named = []setting.Setting{
	setting.New("auto.exact", "yes", "no: an approximation also where the exact way fits.",
		setting.Yes(func(s *query.Settings) *bool { return &s.NoExact }, "no"), query.MethodAuto),
}
