package evaluate

// Experiment "large": models that no exact method handles, by sampled components and by the plain annealer, at the same processor time.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/lab/baseline"
	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/factorgraph"
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

func ofLarge() Experiment {
	return Experiment{
		Name: "large",
		Description: "large models of seven kinds: errors of sampled components and of annealed importance sampling " +
			"by the square root of the processor time that they took",
		Run:     runLarge,
		Figures: func([]Row) []Figure { return nil },
		Summary: largeTable,
		Tables:  largeTables,
	}
}

// runLarge compares with estimates that have ten times the work: their standard errors are rows of their own.
func runLarge(ctx context.Context, o Options) ([]Row, error) {
	n, scale := o.Seeds, 1.0
	if n == 0 {
		n = largeSeeds
	}
	if o.Short {
		n, scale = 1, 1.0/100
	}
	sampled := func(flops float64, seed uint64) btn.Settings {
		return btn.Settings{Method: btn.MethodSampled, Budget: flops * scale, Seed: seed, Accuracy: 1e-9}
	}
	methods := []Method{
		Settings(ofSampled, sampled(largeFlops, 1)),
		Settings(ofAuto, btn.Settings{Method: btn.MethodAuto, NoExact: true, Budget: largeFlops * scale, Seed: 1, Accuracy: 1e-9}),
		onExpression(ofAnnealing, func(ctx context.Context, e *sumproduct.Expression) (Outcome, [][]float64, error) {
			const temperatures = 1000
			chains := max(8, int(largeSteps*scale/temperatures/float64(len(e.Dims))))
			o, marginals, err := annealing(ctx, e, baseline.AnnealingOptions{Temperatures: temperatures, Chains: chains})
			o.Uncertainty = math.NaN()
			return o, marginals, err
		}),
	}
	have := byModel(o.Earlier)
	var rows []Row
	models := families.Large(n)
	if o.Short {
		models = models[:largeShort]
	}
	for _, m := range models {
		model, err := m.Model()
		if err != nil {
			return rows, err
		}
		row := Row{
			Model: m.String(), Family: fmt.Sprintf("%s %d", m.Family, m.Size), Variables: len(model.Domains), Strength: m.Strength,
			Seed: m.Seed, Step: math.NaN(),
		}
		known, ok := have[[2]string{row.Model, ofReference}]
		if !ok {
			if known, err = largeReference(ctx, model, Settings(ofReference, sampled(referenceFlops, 2)), row); err != nil {
				return rows, err
			}
		}
		rows = append(rows, known)
		var missing []Method
		for _, method := range methods {
			if r, ok := have[[2]string{row.Model, method.Name}]; ok {
				rows = append(rows, r)
			} else {
				missing = append(missing, method)
			}
		}
		more, said, err := answers(ctx, row, model, Outcome{LnZ: known.Estimate, Guarantee: silent()}, missing, false)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
		if o.Keep != nil {
			if err := o.Keep(rows); err != nil {
				return rows, err
			}
		}
		o.say(fmt.Sprintf("%s: within %s%s", m, short(known.StandardError), said))
	}
	return rows, nil
}

// largeReference is the row of the estimate that the others are held against.
func largeReference(ctx context.Context, model *factorgraph.Model, m Method, row Row) (Row, error) {
	rows, _, err := answers(ctx, row, model, unknown(), []Method{m}, false)
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

// byKind are the rows of every kind, in the sequence in which kinds come first.
func byKind(rows []Row) (kinds []group) {
	for _, r := range rows {
		k := slices.IndexFunc(kinds, func(g group) bool { return g.name == r.Family })
		if k < 0 {
			k, kinds = len(kinds), append(kinds, group{name: r.Family})
		}
		kinds[k].rows = append(kinds[k].rows, r)
	}
	return kinds
}

// largeTable says, for every kind, the median over its models of the error by √(processor seconds), and of the width of the bounds.
func largeTable(rows []Row) string {
	var b strings.Builder
	b.WriteString("| models | reference ± | annealing: error | CPU s | sampled: error | CPU s | at equal time smaller by | ")
	b.WriteString("auto: error | CPU s | ln Z − lower | upper − ln Z |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, g := range byKind(rows) {
		median := func(method string, of func(Row) float64) float64 {
			var all []float64
			for _, r := range g.rows {
				if x := of(r); r.Method == method && !math.IsNaN(x) {
					all = append(all, x)
				}
			}
			if len(all) == 0 {
				return math.NaN()
			}
			slices.Sort(all)
			return (all[len(all)/2] + all[(len(all)-1)/2]) / 2
		}
		failure := func(r Row) float64 { return r.Error }
		cpu := func(r Row) float64 { return r.CPU }
		each := func(r Row) float64 { return r.Error * math.Sqrt(r.CPU) }
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f | %s | %.2f | %.1f | %s | %.2f | %s | %s |\n", g.name,
			short(median(ofReference, func(r Row) float64 { return r.StandardError })),
			short(median(ofAnnealing, failure)), median(ofAnnealing, cpu), short(median(ofSampled, failure)), median(ofSampled, cpu),
			median(ofAnnealing, each)/median(ofSampled, each), short(median(ofAuto, failure)), median(ofAuto, cpu),
			short(median(ofSampled, func(r Row) float64 { return r.LnZ - r.Lower })),
			short(median(ofSampled, func(r Row) float64 { return r.Upper - r.LnZ })))
	}
	return b.String()
}
