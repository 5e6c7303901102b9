package learned

import (
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/families/learned/frobenius"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

func TestEconomiseReducesStartsThenSweepsThenComponents(t *testing.T) {
	dims := make([]int, 200)
	net := &btn.Network{Dims: dims}
	for i := range dims {
		dims[i] = 2
	}
	full := query.Settings{Components: 8, Sweeps: 16, Starts: 4}
	enough := frobenius.Cost(net, full)
	for _, c := range []struct {
		flops float64
		check func(s query.Settings) bool
	}{
		{enough, func(s query.Settings) bool { return s.Starts == 4 && s.Sweeps == 16 && s.Components == 8 }},
		{enough / 2, func(s query.Settings) bool { return s.Starts == 2 && s.Sweeps == 16 && s.Components == 8 }},
		{enough / 4.5, func(s query.Settings) bool { return s.Starts == 1 && s.Sweeps < 16 && s.Components == 8 }},
		{1, func(s query.Settings) bool { return s.Starts == 1 && s.Sweeps == 1 && s.Components == 1 }},
	} {
		s := full
		s.LearnFlops = c.flops
		got, warning := Economise(net, s)
		if !c.check(got) {
			t.Errorf("%g flops of %g: %d starts, %d sweeps, %d components",
				c.flops, enough, got.Starts, got.Sweeps, got.Components)
		}
		if reduced := c.flops < enough; reduced != strings.Contains(warning, "reduced") {
			t.Errorf("%g flops of %g: warning %q", c.flops, enough, warning)
		}
		if c.flops > 1 && frobenius.Cost(net, got) > c.flops {
			t.Errorf("%g flops: costs %g", c.flops, frobenius.Cost(net, got))
		}
	}
}
