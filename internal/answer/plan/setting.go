package plan

import (
	"github.com/basetensor/basetensor/internal/methods/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Named are the options of a request that building a network and choosing a way read.
var Named = []setting.Setting{
	setting.New("auto.exact", "yes", "no: an approximation also where the exact way fits.",
		setting.YesOrNo(func(s *query.Settings) *bool { return &s.NoExact }, "no"), query.MethodAuto),
	setting.New("network.cores", "factors", "Tensors that are the cores: factors or variables.",
		setting.Word(func(s *query.Settings) *query.CoreChoice { return &s.Cores }, query.CoresAreFactors, query.CoresAreVariables)),
}
