package evaluate

// Experiment "solvable": models that no exact way reaches, of known ln Z, by every way of the system.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/query"
)

// The work of every way, and the models of a setting.
const (
	solvableFlops = 1e10 // some four seconds of one core
	solvableSeeds = 3
)

// solvableMethods are the ways of the system with so much work: auto first.
func solvableMethods(flops float64) (list []asked) {
	for _, method := range []query.Method{
		query.MethodAuto, query.MethodExact, query.MethodTruncated, query.MethodRegions, query.MethodSampled, query.MethodSymmetryCP,
	} {
		list = append(list, asked{Method: Settings(string(method), query.Settings{Method: method, Budget: flops, Accuracy: 1e-9})})
	}
	return append(list, asked{Method: only("bp")[0]})
}

// runSolvable answers every model by every way, or by those that the options name.
func runSolvable(ctx context.Context, o Options) ([]Row, error) {
	models, methods := families.Solvable(cmp.Or(o.Seeds, solvableSeeds)), solvableMethods(solvableFlops)
	if o.Short {
		models, methods = shortSolvable, solvableMethods(solvableFlops/100)
	}
	if len(o.Methods) > 0 {
		methods = slices.DeleteFunc(methods, func(a asked) bool {
			return !slices.ContainsFunc(o.Methods, func(m Method) bool { return m.Name == a.Name })
		})
	}
	return onMembers(o, models, func(m families.Member, have map[[2]string]Row) ([]Row, string, error) {
		return onMember(ctx, m, fmt.Sprintf("%s %d, %g", m.Family, m.Size, m.Strength), methods, have, familyTruth)
	})
}

// shortSolvable are small members.
var shortSolvable = []families.Member{{Family: "planar-glass", Size: 9, Strength: 1}, {Family: "rank-two", Size: 12, Strength: 1}}

// solvableTable has for every setting and way the median error, what is stated of it in the median, and the processor's seconds.
func solvableTable(rows []Row) string {
	methods := names(rows, methodOf)
	return table("model | "+strings.Join(methods, " | "), groups(rows, familyOf), func(rows []Row) (cells []any) {
		for _, m := range methods {
			cells = append(cells, solvableCell(ofMethod(rows, m)))
		}
		return cells
	})
}

// solvableCell is what one way does on the models of a setting.
func solvableCell(rows []Row) string {
	var errors, stated, seconds []float64
	exact := 0
	for _, r := range rows {
		seconds = append(seconds, r.CPU)
		if math.IsNaN(r.Estimate) {
			continue
		}
		if r.Uncertainty == 0 {
			exact++
		}
		errors, stated = append(errors, r.Error), append(stated, r.Uncertainty)
	}
	switch took := fmt.Sprintf("%.1f s", chart.Summary(0, seconds).Y); {
	case len(rows) == 0:
		return "–"
	case len(errors) == 0:
		return "no answer, " + took
	case exact == len(rows):
		return "exact, " + took
	default:
		return fmt.Sprintf("%s (%s), %s", middle(errors), middle(stated), took)
	}
}
