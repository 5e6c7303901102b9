package bp_test

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/bp"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/internal/reference"
)

// TestReferenceModels: belief propagation converges on models of the UAI competitions, and ln Z is off by no more than was measured
// (errors of the Bethe value itself). BN_69 is a tree under its evidence; Pedigree_13 takes the residual schedule, log-1 and
// 2bitcomp_5 do not converge by sweeps without damping.
func TestReferenceModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		error float64 // nats
	}{
		{"uai/BN_69", 1e-4}, {"uai/Alchemy_11", 0.033}, {"uai/DBN_15", 0.013}, {"uai/Promedus_29", 0.03}, {"uai/relational_3", 0.24},
		{"uai/ObjectDetection_35", 0.026}, {"uai/CSP_11", 2.65}, {"uai/Pedigree_13", 3.5}, {"uai/log-1.cnf", 5.8}, {"uai/2bitcomp_5.cnf", 5.1},
	} {
		log10, _ := reference.Log10Z(t, c.name)
		e, err := einsum.Build(reference.Network(t, c.name))
		if err != nil {
			t.Fatal(err)
		}
		s := run(t, e, bp.Options{})
		if off := math.Abs(s.LnZ() - log10*math.Ln10); !s.Converged || !(off <= c.error) {
			t.Errorf("%s: converged %v, change %g, ln Z is off by %g, at most %g", c.name, s.Converged, s.Change, off, c.error)
		}
	}
}
