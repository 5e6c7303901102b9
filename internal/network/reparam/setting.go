package reparam

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/setting"
)

// Named are the options of a request that building a network reads.
var Named = []setting.Setting{
	setting.New("network.cores", "factors", "Tensors that are the cores: factors or variables.",
		setting.Word(func(s *btn.Settings) *btn.CoreChoice { return &s.Cores }, btn.CoresAreFactors, btn.CoresAreVariables)),
}
