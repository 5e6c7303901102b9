package plan

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/setting"
)

// Named are the options of a request that the choice between families reads.
var Named = []setting.Setting{
	setting.New("auto.exact", "yes", "no: an approximation also where the exact way fits.",
		setting.Yes(func(s *btn.Settings) *bool { return &s.NoExact }, "no"), btn.MethodAuto),
}
