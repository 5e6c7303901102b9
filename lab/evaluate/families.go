package evaluate

// Experiment "families": every family of models, answered by the system within little memory and work, and by others.

import (
	"context"
	"fmt"
	"math"
	"path"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/lab/baseline"
	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// The system's limits for a model: some hundredths of the cost of exact answers.
const (
	familyMemory = 64 << 10 // bytes
	familyFlops  = 3e8
	perFamily    = 20
)

// asked is a method, and whether it is asked for marginals.
type asked struct {
	Method
	marginals bool
	few       bool // only the first fewSeeds models of every family: it takes long
}

const fewSeeds = 2

// The methods that tables and figures name.
const (
	ofAuto      = "auto"
	ofMarginals = "auto-marginals"
	ofAnnealing = "annealing"
	ofSampled   = "sampled"
)

// familyMethods are the system's methods, then the ones it is compared with.
func familyMethods() []asked {
	within := func(name string, method query.Method, marginals bool) asked {
		s := query.Settings{Method: method, NoExact: method == query.MethodAuto, Memory: familyMemory, Budget: familyFlops}
		return asked{Settings(name, s), marginals, method == query.MethodRegions}
	}
	return []asked{
		within(ofAuto, query.MethodAuto, false),
		within(ofMarginals, query.MethodAuto, true),
		within("truncated", query.MethodTruncated, false),
		within("regions", query.MethodRegions, false),
		within(ofSampled, query.MethodSampled, false),
		{Method: onExpression(ofAnnealing, anneal), marginals: true},
		{Method: only("bp")[0], marginals: true},
	}
}

// anneal is the plain annealer: 100 chains of 1,000 temperatures.
func anneal(ctx context.Context, e *sumproduct.Expression) (Outcome, [][]float64, error) {
	return annealing(ctx, e, baseline.AnnealingOptions{})
}

func annealing(ctx context.Context, e *sumproduct.Expression, options baseline.AnnealingOptions) (Outcome, [][]float64, error) {
	r, deviation, err := baseline.Annealing(ctx, e, options)
	o := unknown()
	o.LnZ, o.Flops, o.StandardError = r.LnZ, r.Flops, deviation
	if r.Converged {
		o.Uncertainty = deviation
	}
	return o, r.Marginals, err
}

// runFamilies goes by seeds first, so that an interrupted run has some of every family.
func runFamilies(ctx context.Context, o Options) ([]Row, error) {
	methods := familyMethods()
	if len(o.Methods) > 0 {
		methods = nil
		for _, m := range o.Methods {
			methods = append(methods, asked{Method: m, marginals: m.Name != ofAuto})
		}
	}
	names, err := matching(families.Names(), o.Models)
	if err != nil {
		return nil, err
	}
	var list []families.Member
	for seed := o.First; seed < o.First+o.seeds(perFamily, 1); seed++ {
		for _, name := range names {
			m, err := member(name, seed)
			if err != nil {
				return nil, err
			}
			list = append(list, m)
		}
	}
	return onMembers(o, list, func(m families.Member, have map[[2]string]Row) ([]Row, string, error) {
		return onMember(ctx, m, m.Family, methods, have, familyTruth)
	})
}

// member is the one of a seed.
func member(family string, seed int) (families.Member, error) {
	members, err := families.Members(family, seed+1)
	if err != nil {
		return families.Member{}, err
	}
	return members[seed], nil
}

// onMembers are the rows of one model after the other, kept after each that was measured.
func onMembers(
	o Options, list []families.Member, on func(m families.Member, have map[[2]string]Row) (rows []Row, said string, err error),
) (rows []Row, err error) {
	have := map[[2]string]Row{}
	for _, r := range o.Earlier {
		have[[2]string{r.Model, r.Method}] = r
	}
	for k, m := range list {
		more, said, err := on(m, have)
		rows = append(rows, more...)
		if err == nil && o.Keep != nil && said != "" {
			err = o.Keep(rows)
		}
		if err != nil {
			return rows, err
		}
		if said != "" {
			o.say(fmt.Sprintf("%d/%d %s:%s", k+1, len(list), m, said))
		}
	}
	return rows, nil
}

// matching are the names that one of these patterns matches; all without patterns.
func matching(names, patterns []string) (list []string, err error) {
	for _, name := range names {
		found := len(patterns) == 0
		for _, p := range patterns {
			ok, err := path.Match(p, name)
			if err != nil {
				return nil, fault.Wrap(fault.BadInput, err)
			}
			found = found || ok
		}
		if found {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.BadInput, "evaluate: no family matches %q", patterns)
	}
	return list, nil
}

// familyTruth is the truth of a member: its family's own, or the system's exact answer.
func familyTruth(ctx context.Context, m families.Member, model *factorgraph.Model) (Outcome, error) {
	start := now()
	lnZ, marginals, ok, err := m.Truth(ctx, model)
	switch {
	case err != nil:
		return unknown(), fmt.Errorf("%s: %w", m, err)
	case !ok:
		return solved(ctx, m, model, true)
	}
	o := unknown()
	o.LnZ, o.Uncertainty, o.Marginals, o.Seconds = lnZ, 0, marginals, now().Sub(start).Seconds()
	return o, nil
}

// onMember is the rows of one model: those that there are, then the others, beside the truth.
func onMember(
	ctx context.Context, m families.Member, family string, methods []asked, have map[[2]string]Row,
	truth func(context.Context, families.Member, *factorgraph.Model) (Outcome, error),
) (rows []Row, said string, err error) {
	var missing []asked
	for _, a := range methods {
		if r, ok := have[[2]string{m.String(), a.Name}]; ok {
			rows = append(rows, r)
		} else if !a.few || m.Seed < fewSeeds {
			missing = append(missing, a)
		}
	}
	if len(missing) == 0 {
		return rows, "", nil
	}
	model, err := m.Model()
	if err != nil {
		return rows, "", err
	}
	exact, err := truth(ctx, m, model)
	if err != nil {
		return rows, "", err
	}
	row := Row{
		Model: m.String(), Family: family, Variables: len(model.Domains), Strength: m.Strength, Seed: m.Seed, Step: math.NaN(),
	}
	for _, a := range missing {
		more, word, err := answers(ctx, row, model, exact, []Method{a.Method}, a.marginals)
		rows, said = append(rows, more...), said+word
		if err != nil {
			return rows, said, err
		}
	}
	return rows, said, nil
}
