package golden

// Small models, by every method, maps and cores. All kinds of factors, zeros, signs, and numbers
// that float64 does not hold.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/truth"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// must ends the tests where a model cannot be made.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// smallModels are the same in every run: seeds are fixed. Their digests are goldens too, so that a
// changed generator is distinguished from a changed answer.
func smallModels() map[string]*factorgraph.Model {
	random := func(seed uint64, o modeltest.SmallOptions) *factorgraph.Model {
		return modeltest.Small(rand.New(rand.NewPCG(seed, 11)), o)
	}
	kinds := func(k ...modeltest.Kind) modeltest.SmallOptions {
		return modeltest.SmallOptions{Variables: 8, Factors: 10, MaxArity: 4, MaxStates: 1 << 11, Constant: true, Kinds: k}
	}
	ising := generate.Ising{Delta: 1, Seed: 3}
	models := map[string]*factorgraph.Model{
		"dense":       random(1, kinds(modeltest.Dense)),
		"cp":          random(2, kinds(modeltest.CP)),
		"symmetric":   random(3, kinds(modeltest.Symmetric)),
		"symmetry-cp": random(4, kinds(modeltest.SymmetryCP)),
		"mixed": random(5, modeltest.SmallOptions{
			Variables: 9,
			Factors:   14,
			MinDomain: 1,
			MaxDomain: 4,
			MaxArity:  4,
			MaxStates: 1 << 11,
		}),
		"zeros":         random(6, modeltest.SmallOptions{Variables: 8, Factors: 12, Zeros: 0.15, MaxStates: 1 << 10}),
		"contradictory": random(7, modeltest.SmallOptions{Variables: 6, Factors: 14, Zeros: 0.6, MaxStates: 1 << 9}),
		"signed":        random(8, modeltest.SmallOptions{Variables: 7, Factors: 9, Negative: true, MaxStates: 1 << 9}),
		"grid":          must(generate.Grid(4, 5, ising)),
		"complete":      must(generate.Complete(8, ising)),
		"regular":       must(generate.RandomRegular(14, 3, ising)),
		"potts":         must(generate.Grid(3, 4, generate.Ising{Delta: 1, Seed: 4, Domain: 3})),
		"frustrated":    modeltest.Frustrated(3, 4, 1, 5),
		"clauses": must(generate.Constraints(generate.ConstraintOptions{
			Variables:   10,
			Constraints: 10,
			Seed:        6,
		})),
		"colouring":   modeltest.Colouring(8, 14, 3, 7),
		"parity":      must(modeltest.Parity(12, 0.06, 8)),
		"curie-weiss": modeltest.CurieWeiss(8, 0.1, 2, 9),
		"noisy-or":    noisyOr(),
		"apart":       apart(),
	}
	for _, core := range []string{"cp", "symmetric", "symmetry-cp"} {
		models["planted-"+core] = planted(core)
	}
	for _, i := range []uint64{11, 21, 23, 29, 51} {
		models[fmt.Sprintf("wild-%d", i)] = truth.Draw(modeltest.Wild, 5, i).Model
	}
	return models
}

// planted is a core of a tractable form over eight variables of two or three values, and tables that divide them.
func planted(core string) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(10, 0x6274))
	numbers := func(n int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = 0.5 + rng.Float64()
		}
		return list
	}
	m, all := &factorgraph.Model{}, []int{0, 1, 2, 3, 4, 5, 6, 7}
	for range all {
		m.Domains = append(m.Domains, 2+rng.IntN(2))
	}
	levels := countspace.TwoLevels(m.Domains)
	walk := func() scaled.Vector {
		v, ln := scaled.NewVector(len(all)+1), 0.0
		for i := range v.Mant {
			v.Set(i, scaled.FromLog(ln))
			ln += rng.Float64() - 0.5
		}
		return v
	}
	vectors := func(rank int) (list [][]float64) {
		for _, d := range m.Domains {
			list = append(list, numbers(rank*d))
		}
		return list
	}
	var table tensor.Tensor
	switch core {
	case "cp":
		weights := numbers(3)
		table = &tensor.CP{Shape: m.Domains, Weights: weights, Vectors: vectors(3)}
	case "symmetric":
		table = &tensor.Symmetric{Shape: m.Domains, Levels: levels, Values: walk()}
	default:
		t := &tensor.SymmetryCP{Shape: m.Domains, Levels: levels}
		for range 3 {
			term := tensor.SymmetryRankOne{S: walk(), Alpha: numbers(1)[0]}
			term.R = vectors(1)
			t.Terms = append(t.Terms, term)
		}
		table = t
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: all, Table: table})
	for rest := rng.Perm(len(all)); len(rest) > 0; {
		n := min(1+rng.IntN(3), len(rest))
		var shape []int
		size := 1
		for _, v := range rest[:n] {
			shape, size = append(shape, m.Domains[v]), size*m.Domains[v]
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rest[:n:n], Table: must(factorgraph.Table(shape, numbers(size)))})
		rest = rest[n:]
	}
	return m
}

// noisyOr is diseases and findings with many causes.
func noisyOr() *factorgraph.Model {
	m, rng := &factorgraph.Model{}, rand.New(rand.NewPCG(12, 11))
	for v := range 10 {
		m.Domains = append(m.Domains, 2)
		p := 0.05 + 0.3*rng.Float64()
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{v},
			Table: must(factorgraph.Table([]int{2}, []float64{1 - p, p})),
		})
	}
	for f := range 5 {
		finding, causes := 10+f, rng.Perm(10)[:4+f%3]
		m.Domains = append(m.Domains, 2)
		activate := make([]float64, len(causes))
		for i := range activate {
			activate[i] = rng.Float64()
		}
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: append(causes, finding),
			Table: must(factorgraph.NoisyOr(0.02, activate...)),
		})
	}
	return m
}

// apart is a loop of tables beside cardinalities over many variables: parts that take different
// ways.
func apart() *factorgraph.Model {
	m, rng := must(generate.Grid(2, 3, generate.Ising{Delta: 1, Seed: 13})), rand.New(rand.NewPCG(13, 11))
	var scope []int
	for range 24 {
		scope = append(scope, len(m.Domains))
		m.Domains = append(m.Domains, 2)
		field := must(factorgraph.Table([]int{2}, []float64{rng.Float64(), 1}))
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope[len(scope)-1:], Table: field})
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: must(factorgraph.AtMost(24, 7))})
	return m
}

// smallQueries are marginals without evidence, an event with marginals over it, likelihoods, and a
// joint marginal.
func smallQueries(m *factorgraph.Model) []query.Query {
	n := len(m.Domains)
	hard := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: n / 2, Value: m.Domains[n/2] - 1}}}
	soft := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 0, Weights: weights(m.Domains[0])}}}
	return []query.Query{
		{Marginals: true},
		{Evidence: hard, Marginals: true, Over: 1},
		{Evidence: soft},
		{Evidence: soft, Joint: []int{n - 1, 0}},
	}
}

func weights(n int) []float64 {
	w := make([]float64, n)
	for x := range w {
		w[x] = 0.3 + float64(x)
	}
	return w
}

// methods are the ways to answer, with budgets in counted work that make something of each on a
// small model.
var methods = map[string]query.Settings{
	"exact":       {Method: query.MethodExact},
	"exact-small": {Method: query.MethodExact, Memory: 2 << 10},
	"auto":        {Method: query.MethodAuto},
	"auto-small":  {Method: query.MethodAuto, Memory: 1 << 10, Budget: 1e5},
	"auto-not":    {Method: query.MethodAuto, NoExact: true, Bond: 4, Budget: 1e7},
	"truncated":   {Method: query.MethodTruncated, Bond: 3, Budget: 1e7},
	"regions":     {Method: query.MethodRegions, Budget: 1e6},
	"symmetry-cp": {Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2, Budget: 1e7},
}

// quick are the methods that are asked under every maps, which are for symmetry-cp alone: the
// answers are those under the identity.
var quick = map[string]bool{"exact": true, "auto": true, "truncated": true}

// refused are settings that no model is answered with.
var refused = map[string]query.Settings{
	"method": {Method: "none"},
	"maps":   {Method: query.MethodSymmetryCP, Maps: "none"},
	"cores":  {Cores: "none"},
	"memory": {Method: query.MethodExact, Memory: 1},
}

var mapKinds = []query.MapKind{query.MapIdentity, query.MapOrthogonal, query.MapBP, query.MapGiven}
var coreChoices = []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}

// small are the answers of all small models, which two tests share.
var small = sync.OnceValue(func() func(*testing.T) *answers {
	var a *answers
	return func(t *testing.T) *answers {
		if a == nil {
			a = answerSmall(t)
		}
		return a
	}
})

func answerSmall(t *testing.T) *answers {
	a := newAnswers()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for model, m := range smallModels() {
		var text bytes.Buffer
		if err := modeljson.Encode(&text, m); err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		a.results.add(model, "model="+digest(text.Bytes()))
		for method, s := range methods {
			group.Go(func() error {
				for _, s.Cores = range coreChoices {
					for _, s.Maps = range mapKinds {
						name := fmt.Sprintf("%s %s %s", model, method, s.Cores)
						switch {
						case s.Method == query.MethodSymmetryCP:
							a.ask(t, name+" "+string(s.Maps), m, smallQueries(m), s)
						case s.Maps == query.MapIdentity:
							a.ask(t, name, m, smallQueries(m), s)
						case quick[method]:
							a.askAgain(t, name, m, smallQueries(m), s)
						}
					}
				}
				return nil
			})
		}
	}
	for name, s := range refused {
		m := smallModels()["dense"]
		a.ask(t, "dense refused-"+name, m, smallQueries(m), s)
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return a
}

const meant = "If that is meant, say why in the commit and write them anew: go test ./internal/testing/golden -update"

func TestSmallModels(t *testing.T) {
	here(t)
	small()(t).results.hold(t, "small", meant, nil)
}

// TestDecompositions guards proposal.AlgorithmVersion, which is part of the keys under which caches keep
// decompositions: they must not be served to a program that would learn others.
func TestDecompositions(t *testing.T) {
	here(t)
	small()(t).decompositions.hold(t, decompositionsOf("small"), bump, nil)
}

// decompositionsOf names the goldens of the decompositions of some models. Another version has other
// goldens; -update does not overwrite one with another under the same version.
func decompositionsOf(models string) string {
	return "decompositions-" + models + "-" + proposal.AlgorithmVersion
}

const bump = "Bump AlgorithmVersion (internal/answer/plan): caches keep decompositions under it. " +
	"Then remove the goldens of the old version and write the new ones: go test ./internal/testing/golden -update"
