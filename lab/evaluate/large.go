package evaluate

// Experiment "large": models that no exact method handles, by sampled components and by the plain annealer, at the same processor time.

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/lab/baseline"
	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// The limits of every method, and the reference's larger ones, with another seed.
const (
	largeFlops     = 6e9 // two seconds of one core
	referenceFlops = 6e10
	largeSteps     = 1e8 // single-site steps of the annealer, some two seconds
	largeSeeds     = 5
	largeShort     = 2 // models of a short run
	ofReference    = "reference"
)

// runLarge compares with estimates that have ten times the work: their standard errors are rows of their own.
func runLarge(ctx context.Context, o Options) ([]Row, error) {
	models, scale := families.Large(cmp.Or(o.Seeds, largeSeeds)), 1.0
	if o.Short {
		models, scale = families.Large(1)[:largeShort], 1.0/100
	}
	sampled := func(name string, flops float64, seed uint64) asked {
		return asked{Method: Settings(name, query.Settings{Method: query.MethodSampled, Budget: flops * scale, Seed: seed, Accuracy: 1e-9})}
	}
	methods := []asked{
		sampled(ofSampled, largeFlops, 1),
		{Method: Settings(ofAuto, query.Settings{Method: query.MethodAuto, NoExact: true, Budget: largeFlops * scale, Seed: 1, Accuracy: 1e-9})},
		{Method: onExpression(ofAnnealing, func(ctx context.Context, e *sumproduct.Expression) (Outcome, [][]float64, error) {
			const temperatures = 1000
			chains := max(8, int(largeSteps*scale/temperatures/float64(len(e.Dims))))
			o, marginals, err := annealing(ctx, e, baseline.AnnealingOptions{Temperatures: temperatures, Chains: chains})
			o.Uncertainty = math.NaN()
			return o, marginals, err
		})},
	}
	return onMembers(o, models, func(m families.Member, have map[[2]string]Row) ([]Row, string, error) {
		given := func(lnZ float64) func(context.Context, families.Member, *factorgraph.Model) (Outcome, error) {
			o := unknown()
			o.LnZ = lnZ
			return func(context.Context, families.Member, *factorgraph.Model) (Outcome, error) { return o, nil }
		}
		kind := fmt.Sprintf("%s %d", m.Family, m.Size)
		rows, first, err := onMember(ctx, m, kind, []asked{sampled(ofReference, referenceFlops, 2)}, have, given(math.NaN()))
		if err != nil {
			return rows, first, err
		}
		more, said, err := onMember(ctx, m, kind, methods, have, given(rows[0].Estimate))
		return append(rows, more...), first + said, err
	})
}

// largeTable says, for every kind, the median over its models of the error by √(processor seconds), and of the width of the bounds.
func largeTable(rows []Row) string {
	const columns = "models | reference ± | annealing: error | CPU s | sampled: error | CPU s | at equal time smaller by | " +
		"auto: error | CPU s | ln Z − lower | upper − ln Z"
	return table(columns, groups(rows, familyOf), func(rows []Row) []any {
		median := func(method string, of func(Row) float64) float64 {
			var all []float64
			for _, r := range ofMethod(rows, method) {
				all = append(all, of(r))
			}
			return chart.Summary(0, all).Y
		}
		each := func(r Row) float64 { return r.Error * math.Sqrt(r.CPU) }
		seconds := func(method string) string {
			return fmt.Sprintf("%.2f", median(method, func(r Row) float64 { return r.CPU }))
		}
		return []any{
			short(median(ofReference, func(r Row) float64 { return r.StandardError })),
			short(median(ofAnnealing, ofError)), seconds(ofAnnealing), short(median(ofSampled, ofError)), seconds(ofSampled),
			fmt.Sprintf("%.1f", median(ofAnnealing, each)/median(ofSampled, each)), short(median(ofAuto, ofError)), seconds(ofAuto),
			short(median(ofSampled, func(r Row) float64 { return r.LnZ - r.Lower })),
			short(median(ofSampled, func(r Row) float64 { return r.Upper - r.LnZ })),
		}
	})
}
