package evaluate

// Experiment "learned": symmetry-CP by the variance of its estimate, beside the plain objective and belief propagation.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/query"
)

// ofVariance and ofPlain are the methods of the two objectives.
const ofVariance, ofPlain = "variance", "frobenius"

// firstFamilies is the number of families that the experiment has.
const firstFamilies = 24

// learnedMethods are belief propagation and the two objectives.
func learnedMethods() []asked {
	return []asked{
		{Method: only("bp")[0]},
		{Method: Settings(ofPlain, query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Budget: 3e9,
		})},
		{Method: Settings(ofVariance, query.Settings{Method: query.MethodSymmetryCP, Budget: 3e9, Memory: familyMemory})},
	}
}

// runLearned asks the smallest members of every family, a seed for each strength.
func runLearned(ctx context.Context, o Options) ([]Row, error) {
	seeds, names := []int{0, 3, 6}, families.Names()[:firstFamilies]
	if o.Short {
		seeds, names = seeds[:1], names[:2]
	}
	names, err := matching(names, o.Models)
	if err != nil {
		return nil, err
	}
	var list []families.Member
	for _, name := range names {
		for _, seed := range seeds {
			m, err := member(name, seed)
			if err != nil {
				return nil, err
			}
			list = append(list, m)
		}
	}
	return onMembers(o, list, func(m families.Member, have map[[2]string]Row) ([]Row, string, error) {
		return onMember(ctx, m, m.Family, learnedMethods(), have, familyTruth)
	})
}

// learnedTable has the medians of every family, and the share of errors within three times the stated uncertainty and standard error.
func learnedTable(rows []Row) string {
	const columns = "family | bp | frobenius | variance | standard error | stated | within 3 × stated | within 3 standard errors"
	return table(columns, byFamily(rows), func(rows []Row) []any {
		of := ofMethod(rows, ofVariance)
		var errors, stated []float64
		within := 0
		for _, r := range of {
			if math.IsNaN(r.StandardError) {
				continue // exact
			}
			errors, stated = append(errors, r.StandardError), append(stated, r.Uncertainty)
			if r.Error <= 3*r.StandardError {
				within++
			}
		}
		c := cover(of, false)
		return []any{middleError(ofMethod(rows, "bp")), middleError(ofMethod(rows, ofPlain)), middleError(of), middle(errors), middle(stated),
			share(c.within, c.approximate), share(within, len(errors))}
	})
}
