package evaluate

// Experiment "learned": symmetry-CP by the variance of its estimate, beside the plain objective and belief propagation.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/query"
)

// ofVariance and ofPlain are the methods of the two objectives.
const ofVariance, ofPlain = "variance", "frobenius"

// firstFamilies is the number of families that the experiment has.
const firstFamilies = 24

func learned() Experiment {
	return Experiment{
		Name: "learned",
		Description: "symmetry-CP by the variance of its estimate, on the smallest size of 24 families within 3e9 flops and 64 KiB: errors " +
			"and what is stated, beside the plain objective and belief propagation",
		Run:     runLearned,
		Figures: func([]Row) []Figure { return nil },
		Summary: learnedTable,
		Tables:  func(rows []Row) []Table { return []Table{{"objectives", learnedTable(rows)}} },
	}
}

// learnedMethods are belief propagation and the two objectives.
func learnedMethods() (list []asked) {
	for _, m := range Methods() {
		if m.Name == "bp" {
			list = append(list, asked{Method: m})
		}
	}
	return append(list,
		asked{Method: Settings(ofPlain, btn.Settings{
			Method: btn.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, LearnFlops: 2e8,
		})},
		asked{Method: Settings(ofVariance, btn.Settings{Method: btn.MethodSymmetryCP, Budget: 3e9, Memory: familyMemory})},
	)
}

// runLearned asks the smallest members of every family, a seed for each strength.
func runLearned(ctx context.Context, o Options) (rows []Row, err error) {
	seeds, names := []int{0, 3, 6}, families.Names()[:firstFamilies]
	if o.Short {
		seeds, names = seeds[:1], names[:2]
	}
	if names, err = matching(names, o.Models); err != nil {
		return nil, err
	}
	have := byModel(o.Earlier)
	for _, name := range names {
		for _, seed := range seeds {
			members, err := families.Members(name, seed+1)
			if err != nil {
				return rows, err
			}
			more, said, err := onMember(ctx, members[seed], learnedMethods(), have)
			if rows = append(rows, more...); err != nil {
				return rows, err
			}
			o.say(fmt.Sprintf("%s:%s", members[seed], said))
		}
	}
	return rows, nil
}

// learnedTable has the medians of every family, and the share of errors within three times the stated uncertainty and standard error.
func learnedTable(rows []Row) string {
	var b strings.Builder
	b.WriteString("| family | bp | frobenius | variance | standard error | stated | within 3 × stated | within 3 standard errors |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, g := range byFamily(rows) {
		of := ofMethod(g.rows, ofVariance)
		var errors, stated []float64
		within, drawn := 0, 0
		for _, r := range of {
			if math.IsNaN(r.StandardError) {
				continue // exact
			}
			drawn++
			errors, stated = append(errors, r.StandardError), append(stated, r.Uncertainty)
			if r.Error <= 3*r.StandardError {
				within++
			}
		}
		stated = slices.DeleteFunc(stated, math.IsNaN)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", g.name, middleError(ofMethod(g.rows, "bp")),
			middleError(ofMethod(g.rows, ofPlain)), middleError(of), middle(errors), middle(stated),
			share(cover(of, false).within, cover(of, false).approximate), share(within, drawn))
	}
	return b.String()
}
