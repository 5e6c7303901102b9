package truncated

import (
	"github.com/basetensor/basetensor/internal/methods/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Settings are the options of a request that truncated legs read.
var Settings = []setting.Setting{
	setting.New("truncated.bond", "0", "Bond to grow to, whatever the budget; 0: up to the budget.",
		setting.Int(func(s *query.Settings) *int { return &s.Bond }, 0, 1<<20), query.MethodAuto, query.MethodTruncated),
}
