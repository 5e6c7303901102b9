package learned

// What learning may cost: fewer starts, sweeps and components where all of them are beyond it.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/families/learned/frobenius"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// afford returns the settings of Economise, and its warning. If one symmetry-rank-one component still takes more than LearnFlops, the
// component is one of rank one, whose sweeps take time in proportion to the legs.
func afford(net *btn.Network, settings query.Settings) (frobenius.Options, string) {
	s, warning := Economise(net, settings)
	o := frobenius.Options{Settings: s}
	if frobenius.Cost(net, s) > s.LearnFlops {
		o.Classes = []btn.Class{btn.ClassRankOne}
		warning = fmt.Sprintf("%s; a symmetry-rank-one component takes %.3g, so it is one of rank one",
			warning, frobenius.Cost(net, s))
	}
	return o, warning
}

// Economise returns settings under which learning costs at most settings.LearnFlops by Cost: one start, then
// fewer sweeps, then fewer components, each halved until it fits, and a sentence that says so (empty if
// nothing was reduced). One component with one start and one sweep remains whatever it costs.
func Economise(net *btn.Network, settings query.Settings) (affordable query.Settings, warning string) {
	s := frobenius.Settings(settings)
	for _, field := range []*int{&s.Starts, &s.Sweeps, &s.Components} {
		for frobenius.Cost(net, s) > s.LearnFlops && *field > 1 {
			*field /= 2
		}
	}
	if full := frobenius.Settings(settings); s != full {
		warning = fmt.Sprintf("learning was reduced to %d components, %d sweeps and %d starts (of %d, %d "+
			"and %d) to stay within %.3g flops",
			s.Components, s.Sweeps, s.Starts, full.Components, full.Sweeps, full.Starts, s.LearnFlops)
	}
	return s, warning
}
