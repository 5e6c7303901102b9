package reparam

import (
	"github.com/basetensor/basetensor/internal/network/setting"
	"github.com/basetensor/basetensor/pkg/query"
)

// Named are the options of a request that building a network reads.
var Named = []setting.Setting{
	setting.New("network.cores", "factors", "Tensors that are the cores: factors or variables.",
		setting.Word(func(s *query.Settings) *query.CoreChoice { return &s.Cores }, query.CoresAreFactors, query.CoresAreVariables)),
}
