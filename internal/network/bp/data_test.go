package bp_test

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/testing/reference"
)

// TestReferenceModels: belief propagation converges on models of the UAI competitions, and ln Z is
// off by no more than was measured (errors of the Bethe value itself). BN_69 is a tree under its
// evidence; Pedigree_13 takes the residual schedule, log-1 and 2bitcomp_5 do not converge by sweeps
// without damping.
func TestReferenceModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		error float64 // nats
	}{
		{"uai/BN_69", 1e-4}, {"uai/Alchemy_11", 0.033}, {"uai/DBN_15", 0.013}, {"uai/Promedus_29", 0.03},
		{"uai/relational_3", 0.24},
		{"uai/ObjectDetection_35", 0.026}, {"uai/CSP_11", 2.65}, {"uai/Pedigree_13", 3.5},
		{"uai/log-1.cnf", 5.8}, {"uai/2bitcomp_5.cnf", 5.1},
	} {
		log10, _ := reference.Log10Z(t, c.name)
		e, err := lower.Build(context.Background(), reference.Network(t, c.name))
		if err != nil {
			t.Fatal(err)
		}
		s := run(t, e, bp.Options{})
		if off := math.Abs(s.LnZ() - log10*math.Ln10); !s.Converged || !(off <= c.error) {
			t.Errorf("%s: converged %v, change %g, ln Z is off by %g, at most %g",
				c.name, s.Converged, s.Change, off, c.error)
		}
	}
}

// TestStartsMatter: the best of ten starts is far better than the uniform one where a model has
// several phases.
func TestStartsMatter(t *testing.T) {
	for _, c := range []struct {
		name          string
		uniform, best float64 // |Δ ln Z| in nats: at least, at most
	}{
		{"uai/Segmentation_11", 4, 0.1}, {"uai/Segmentation_13", 3, 0.8},
		{"ising/grid20x14_attractive_1.0_s0", 5, 3.1}, {"ising/grid20x14_attractive_1.5_s0", 11, 0.6},
	} {
		log10, _ := reference.Log10Z(t, c.name)
		e, err := lower.Build(context.Background(), reference.Network(t, c.name))
		if err != nil {
			t.Fatal(err)
		}
		states, err := bp.FixedPoints(context.Background(), e, 10, bp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := log10 * math.Ln10
		uniform, best := math.Abs(run(t, e, bp.Options{}).LnZ()-want), math.Abs(states[0].LnZ()-want)
		t.Logf("%s: %.3g from uniform messages, %.3g from the best of %d fixed points",
			c.name, uniform, best, len(states))
		if uniform < c.uniform || best > c.best {
			t.Errorf("%s: %g from uniform messages, %g from the best start", c.name, uniform, best)
		}
	}
}
