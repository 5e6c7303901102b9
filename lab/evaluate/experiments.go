package evaluate

// The experiments, a row each: models, methods, figures and lines of text.

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Experiment is a question about the methods.
type Experiment struct {
	Name        string
	Description string
	Run         func(ctx context.Context, o Options) ([]Row, error)
	Summary     func(rows []Row) string   // a few lines of text
	Figures     func(rows []Row) []Figure // nil: none
	Tables      func(rows []Row) []Table  // nil: no page has one
}

// The axes of figures.
var (
	strengthAxis  = chart.Axis{Label: "strength Δ (nats)"}
	componentAxis = chart.Axis{Label: "components", Log: true}
	flopsAxis     = chart.Axis{Label: "flops of the contractions", Log: true, Floor: 1e-4}
	secondsAxis   = chart.Axis{Label: "seconds, search included", Log: true, Floor: 1e-4}
	singleAxis    = chart.Axis{Label: "|Δ ln Z| (nats)", Log: true, Floor: 1e-14}
	marginalAxis  = chart.Axis{Label: "mean total variation of marginals", Log: true, Floor: 1e-15}
	residualAxis  = chart.Axis{Label: "ρ, median and quartiles", Log: true, Floor: math.SmallestNonzeroFloat64}
)

// errorAxis is of the medians of errors, marked at a floor where they are below it.
func errorAxis(floor float64) chart.Axis {
	return chart.Axis{Label: "|Δ ln Z| (nats), median and quartiles", Log: true, Floor: floor}
}

var typicalError = named{"median |Δ ln Z| (nats)", ofError}

// Experiments are all there are.
func Experiments() []Experiment {
	return []Experiment{
		{
			Name: "strength",
			Description: "|Δ ln Z| and the error of the marginals against the strength of the couplings, on four families of graphs and on " +
				"attractive grids",
			Run: compared(true, part{strengthModels, only("bp", "symmetry-cp", "few-regions", "tight-4", "tight-8", "tree-8", "tree-16")}),
			Figures: drawn(Row.label, func(g group) []string { return []string{"strength", g.name} },
				lines{"Error against strength", "lnz", strengthAxis, errorAxis(1e-15), ofStrength, ofError},
				lines{"Error against strength", "marginals", strengthAxis, marginalAxis, ofStrength, ofMarginalError}),
			Summary: medians(Row.label, "Δ", ofStrength, typicalError, named{"median of the marginals' mean total variation", ofMarginalError}),
		},
		{
			Name:        "components",
			Description: "|Δ ln Z| and the residual ρ of symmetry-CP against the number of components (step), for every map and choice of cores",
			Run:         runComponents,
			Figures: drawn(sized, componentFile, lines{"Error against components", "lnz", componentAxis, errorAxis(1e-6), ofStep, ofError},
				lines{"Residual against components", "residual", componentAxis, residualAxis, ofStep, ofResidual}),
			Summary: medians(sized, "r", ofStep, typicalError, named{"median ρ", ofResidual}),
		},
		{
			Name: "time",
			Description: "|Δ ln Z| against flops and seconds spent, the search for a plan included, while bonds, regions and slices grow " +
				"(step: bond, or number of estimates)",
			Run: runTime,
			Figures: drawn(titled, func(g group) []string { return []string{"time", g.rows[0].label(), fmt.Sprint(g.rows[0].Strength)} },
				lines{"Error against flops", "flops", flopsAxis, singleAxis, ofFlops, ofError},
				lines{"Error against seconds", "seconds", secondsAxis, singleAxis, ofSeconds, ofError}),
			Summary: timeSummary,
		},
		{
			Name: "calibration",
			Description: "the error of ln Z against the stated uncertainty: 300 random models of five families, weak to strong, mixed and " +
				"attractive",
			Run:     compared(false, part{calibrationModels, only("tight-8")}),
			Figures: calibrationFigures,
			Summary: calibrationSummary,
		},
		{
			Name:        "calibration-of-more",
			Description: "calibration of whole ladders on dense graphs and of regions on sparse ones, on the first two models of every setting",
			Run:         firstSeeds(2, compared(false, part{denseModels, only("tight-ladder")}, part{sparseModels, only("few-regions")})),
			Figures:     calibrationFigures,
			Summary:     calibrationSummary,
		},
		{
			Name: "calibration-of-constraints",
			Description: "calibration on hard constraints and frustrated grids: parity codes, colourings, weighted constraints, ±J grids; " +
				"attractive grids by regions",
			Run: compared(false, part{codeModels, bonds(2 << 20)}, // checks of six bits need room for a sweep of bond 16
				part{constraintModels, bonds(256 << 10)},
				part{attractiveModels, only("few-regions")}),
			Figures: constraintFigures,
			Summary: constraintSummary,
		},
		{
			Name: "families",
			Description: "49 families of models within 64 KiB: errors, what is stated, bounds and processor time, beside annealed importance " +
				"sampling and belief propagation",
			Run:     runFamilies,
			Figures: familyFigures,
			Summary: familySummary,
			Tables:  familyTables,
		},
		{
			Name: "large",
			Description: "large models of seven kinds: errors of sampled components and of annealed importance sampling by the square root of " +
				"the processor time that they took",
			Run:     runLarge,
			Summary: largeTable,
		},
		{
			Name: "solvable",
			Description: "models of known ln Z that no exact way reaches, by every way within 1e10 flops: planar glasses, strips, dimers, " +
				"parities, Boltzmann machines, couplings of rank two",
			Run:     runSolvable,
			Summary: solvableTable,
			Tables:  func(rows []Row) []Table { return []Table{{"ways", solvableTable(rows)}} },
		},
		{
			Name: "learned",
			Description: "symmetry-CP by the variance of its estimate, on the smallest size of 24 families within 3e9 flops and 64 KiB: errors " +
				"and what is stated, beside the plain objective and belief propagation",
			Run:     runLearned,
			Summary: learnedTable,
		},
	}
}

// Find returns the experiment of that name, or all of them for "all".
func Find(name string) ([]Experiment, error) {
	if name == "all" {
		return Experiments(), nil
	}
	for _, x := range Experiments() {
		if x.Name == name {
			return []Experiment{x}, nil
		}
	}
	return nil, fault.New(fault.BadInput, "evaluate: no experiment %q", name)
}

// part is the models of an experiment that some methods answer.
type part struct {
	sweeps  []sweep
	methods []Method
}

// compared answers every model of the parts exactly and by its methods, or by those of the options.
func compared(marginals bool, parts ...part) func(context.Context, Options) ([]Row, error) {
	return func(ctx context.Context, o Options) (rows []Row, err error) {
		for _, p := range parts {
			if len(o.Methods) > 0 {
				p.methods = o.Methods
			}
			more, err := compare(ctx, o, drawnFrom(p.sweeps, o), p.methods, marginals)
			if rows = append(rows, more...); err != nil {
				return rows, err
			}
		}
		return rows, nil
	}
}

// bonds are truncated legs of bonds 2 to 16 within so many bytes.
func bonds(bytes int64) (methods []Method) {
	for _, bond := range []int{2, 4, 8, 16} {
		s := query.Settings{Method: query.MethodTruncated, Bond: bond, Budget: 2e9, Memory: bytes}
		methods = append(methods, Settings(fmt.Sprintf("bond-%d", bond), s))
	}
	return methods
}

// firstSeeds has only so many models per setting.
func firstSeeds(n int, run func(context.Context, Options) ([]Row, error)) func(context.Context, Options) ([]Row, error) {
	return func(ctx context.Context, o Options) ([]Row, error) {
		o.Seeds = n
		return run(ctx, o)
	}
}

// runComponents has methods of its own.
func runComponents(ctx context.Context, o Options) ([]Row, error) {
	counts := []int{1, 2, 4, 8, 16}
	if o.Short {
		counts = []int{1, 2}
	}
	return compare(ctx, o, drawnFrom(componentModels, o), symmetryCP(counts), false)
}

// symmetryCP are all the ways to decompose with so many components, or as many as the work for learning allows.
func symmetryCP(counts []int) (list []Method) {
	for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
		for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal, query.MapBP} {
			for _, n := range counts {
				m := Settings(string(maps)+", "+string(cores), query.Settings{
					Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: n, Maps: maps, Cores: cores, Budget: 3e9,
				})
				m.Step = float64(n)
				list = append(list, m)
			}
		}
	}
	return list
}

// sized is a label with the number of variables.
func sized(r Row) string { return fmt.Sprintf("%s, %d variables", r.label(), r.Variables) }

// componentFile names the figures of a kind of models.
func componentFile(g group) []string {
	name := strings.Fields(g.name)[0] + " " + fmt.Sprint(g.rows[0].Variables)
	if g.rows[0].Attractive {
		name += " attractive"
	}
	return []string{"components", name}
}
