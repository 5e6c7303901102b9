package golden

// Engines called directly, where the public way would choose another one, with one thread and with
// four.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/engine/wide"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// engineNetworks are large enough that tables are shared among threads, and in maps that no method
// takes by itself.
func engineNetworks(ctx context.Context) map[string]*btn.Network {
	grid := must(generate.Grid(9, 9, generate.Ising{Delta: 1, Seed: 21}))
	random := func(seed uint64, o modeltest.SmallOptions) *factorgraph.Model {
		return modeltest.Small(rand.New(rand.NewPCG(seed, 11)), o)
	}
	mixed := random(22, modeltest.SmallOptions{Variables: 12, Factors: 20, MaxDomain: 4, MaxArity: 4, MaxStates: 1 << 18})
	regular := must(generate.RandomRegular(40, 3, generate.Ising{Delta: 0.7, Seed: 24, Domain: 3}))
	given := func(factor int) (maps []reparam.GivenMap) {
		for _, variable := range mixed.Factors[factor].Scope {
			d, rng := mixed.Domains[variable], rand.New(rand.NewPCG(uint64(variable), uint64(factor)))
			a := make([]float64, d*d)
			for i := range a {
				if a[i] = rng.Float64(); i%(d+1) == 0 {
					a[i] += 2
				}
			}
			maps = append(maps, reparam.GivenMap{A: a})
		}
		return maps
	}
	build := func(m *factorgraph.Model, o reparam.Options) *btn.Network { return must(reparam.Build(ctx, m, o)) }
	return map[string]*btn.Network{
		"grid": build(grid, reparam.Options{}),
		"grid-observed": must(build(grid,
			reparam.Options{}).Condition(factorgraph.Observe(map[int]int{0: 1, 40: 0, 77: 1}))),
		"grid-bp":      must(bp.GaugedNetwork(ctx, grid, query.CoresAreFactors, bp.Options{})),
		"complete":     build(must(generate.Complete(17, generate.Ising{Delta: 0.5, Seed: 23})), reparam.Options{}),
		"regular":      build(regular, reparam.Options{Cores: query.CoresAreVariables}),
		"mixed":        build(mixed, reparam.Options{}),
		"mixed-given":  build(mixed, reparam.Options{Maps: query.MapGiven, Given: given}),
		"mixed-turned": build(mixed, reparam.Options{Maps: query.MapOrthogonal, Cores: query.CoresAreVariables}),
		"signed": build(random(25, modeltest.SmallOptions{
			Variables: 10,
			Factors:   14,
			Negative:  true,
			MaxStates: 1 << 12,
		}), reparam.Options{}),
		"zeros": build(random(26, modeltest.SmallOptions{
			Variables: 12,
			Factors:   16,
			Zeros:     0.03,
			MaxStates: 1 << 14,
		}), reparam.Options{}),
	}
}

// engine contracts a network on some threads and says the fields of the golden.
type engine func(ctx context.Context, net *btn.Network, e *sumproduct.Expression, threads int) ([]string, error)

// number of Z and, where there are any, its marginals.
func value(z scaled.Number, marginals [][]float64) []string {
	fields := []string{
		"sign=" + []string{"-", "0", "+"}[z.Sign()+1], "mant=" + bits(z.Mant), "exp=" + bits(float64(z.Exp)),
	}
	if !z.IsZero() {
		fields = append(fields, "lnz="+bits(z.LogAbs()))
	}
	if marginals != nil {
		fields = append(fields, "mar="+many(marginals...))
	}
	return fields
}

// floats are numbers with exponents as two rows each.
func floats(rows [][]scaled.Number) [][]float64 {
	var out [][]float64
	for _, row := range rows {
		var mant, exp []float64
		for _, x := range row {
			mant, exp = append(mant, x.Mant), append(exp, float64(x.Exp))
		}
		out = append(out, mant, exp)
	}
	return out
}

const engineBytes = 64 << 20

var engines = map[string]engine{
	"order": func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, threads int) ([]string, error) {
		order := must(contractionorder.MinFill(ctx, e.Hypergraph()))
		z, _, err := einsum.Contract(ctx, e, order, einsum.Options{Memory: engineBytes, Threads: threads})
		return value(z, nil), err
	},
	"order-marginals": func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, threads int) ([]string, error) {
		order := must(contractionorder.MinWeight(ctx, e.Hypergraph()))
		r, _, err := einsum.Marginals(ctx, e, order, einsum.Options{Memory: engineBytes, Threads: threads})
		return value(r.Z, floats(r.Marginals)), err
	},
	"junction": func(ctx context.Context, net *btn.Network, _ *sumproduct.Expression, _ int) ([]string, error) {
		h, ok := junction.Shape(net)
		if !ok {
			return []string{"declined=true"}, nil
		}
		tree, ok := junction.Compile(net, must(contractionorder.FromOrder(h, must(contractionorder.MinFill(ctx, h)))))
		if !ok {
			return []string{"declined=true"}, nil
		}
		total := 0
		for _, v := range net.Variables {
			total += v.Domain
		}
		into := make([]scaled.Number, total)
		answers := must(tree.Run(ctx, []junction.Query{{Net: net, Marginals: into}, {Net: net}}, junction.Options{Threads: 1}))
		if !answers[0].OK {
			return []string{"declined=true"}, nil
		}
		return append(value(answers[0].Z, floats([][]scaled.Number{into})), "alone="+bits(answers[1].Z.LogAbs())), nil
	},
	"tree": func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, threads int) ([]string, error) {
		t := must(contractionorder.FromOrder(e.Hypergraph(), must(contractionorder.MinFill(ctx, e.Hypergraph()))))
		r, _, err := pairwise.Marginals(ctx, e, t, pairwise.Options{Memory: engineBytes, Threads: threads})
		return value(r.Z, r.Marginals), err
	},
	"tree-slices": func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, threads int) ([]string, error) {
		h := e.Hypergraph()
		t := must(contractionorder.FromOrder(h, must(contractionorder.MinFill(ctx, h))))
		var slices []int // the first three indices that can be fixed
		for i, d := range h.Dims {
			if d > 1 && len(slices) < 3 {
				slices = append(slices, i)
			}
		}
		whole, _, err := pairwise.Contract(ctx, e, t, pairwise.Options{
			Memory:  engineBytes,
			Threads: threads,
			Slices:  slices,
		})
		if err != nil {
			return nil, err
		}
		part, _, err := pairwise.Contract(ctx, e, t, pairwise.Options{
			Memory:  engineBytes,
			Threads: threads,
			Slices:  slices,
			From:    1,
			To:      3,
		})
		return append(value(whole, nil), "part="+many(floats([][]scaled.Number{{part}})...)), err
	},
	"simplified-slices": func(ctx context.Context, net *btn.Network, _ *sumproduct.Expression, threads int) ([]string, error) {
		p, err := exact.Prepare(ctx, net, true)
		if err != nil {
			return nil, err
		}
		c, plan, err := p.Plan(ctx, 0, 1)
		if err != nil {
			return nil, err
		}
		for c.Count < 4 && plan.Bytes > 1<<10 { // the next plan has half the memory
			next, with, err := p.Plan(ctx, int64(plan.Bytes/2), 1)
			if err != nil {
				break
			}
			c, plan = next, with
		}
		a, err := p.AnswerSlices(ctx, c, exact.Options{Threads: threads})
		return append(value(a.Z, a.Rows), "slices="+bits(float64(c.Count))), err
	},
	"wide": func(ctx context.Context, net *btn.Network, _ *sumproduct.Expression, _ int) ([]string, error) {
		e, err := lower.BuildWide(ctx, net)
		if err != nil {
			return nil, err
		}
		r, err := wide.Contract(ctx, e, wide.Options{Marginals: len(e.Dims) < 60})
		return append(value(r.Z, floats(r.Marginals)), "digits="+bits(r.Digits)), err
	},
	"mps-4":          sweep(4, true),
	"mps-16":         sweep(16, false),
	"compressed-2":   tree(trees.Options{Bond: 2}),
	"compressed-16":  tree(trees.Options{Bond: 16, Gauge: -1}),
	"compressed-mar": tree(trees.Options{Bond: 64, Marginals: true}),
	"truncated": func(ctx context.Context, net *btn.Network, _ *sumproduct.Expression, _ int) ([]string, error) {
		p, err := truncated.Prepare(ctx, net, true)
		if err != nil {
			return nil, err
		}
		plans, _, err := p.Search(ctx, truncated.SearchOptions{Bond: 6, Seed: 1, Marginals: true, Moves: 1 << 22})
		if err != nil {
			return nil, err
		}
		var fields []string
		for k := range plans {
			a, err := p.Contract(ctx, &plans[k], 6, 0, true)
			if err != nil {
				return nil, err
			}
			for _, f := range value(a.Z, a.Rows) {
				fields = append(fields, fmt.Sprintf("%s%d-%s", plans[k].Family, k, f))
			}
		}
		return fields, nil
	},
	"propagation": func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, _ int) ([]string, error) {
		s, err := bp.Run(ctx, e, bp.Options{Seed: 3, Updates: 50_000})
		if err != nil || s.Contradiction >= 0 {
			return []string{"contradiction=true"}, err
		}
		var beliefs [][]float64
		for i := range e.Dims {
			beliefs = append(beliefs, s.Belief(i))
		}
		return []string{"lnz=" + bits(s.LnZ()), "mar=" + many(beliefs...), "messages=" + many(s.Messages())}, nil
	},
	"windows": regions(region.Options{Kind: region.Windows, Size: 3, Marginals: true}),
	"balls":   regions(region.Options{Kind: region.Balls, Size: 2, Marginals: true, MaxWidth: 12, Moves: 1 << 22}),
}

func sweep(bond int, marginals bool) engine {
	return func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, _ int) ([]string, error) {
		p, _, err := sweeps.Search(ctx, e.Hypergraph(), sweeps.SearchOptions{Bond: bond, Seed: 1, Moves: 1 << 17})
		if err != nil {
			return nil, err
		}
		v, err := sweeps.Contract(ctx, e, p, sweeps.Options{Bond: bond, Marginals: marginals, Memory: engineBytes})
		return append(value(v.Z, v.Marginals), "discarded="+bits(v.Discarded)), err
	}
}

func tree(o trees.Options) engine {
	return func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, _ int) ([]string, error) {
		p, _, err := trees.Search(ctx, e.Hypergraph(), trees.SearchOptions{
			Bond:  o.Bond,
			Seed:  1,
			Moves: 1 << 22,
			Flops: 1,
		})
		if err != nil {
			return nil, err
		}
		o.Memory = engineBytes
		v, err := trees.Contract(ctx, e, p, o)
		return append(value(v.Z, v.Marginals), "discarded="+bits(v.Discarded)), err
	}
}

func regions(o region.Options) engine {
	return func(ctx context.Context, _ *btn.Network, e *sumproduct.Expression, threads int) ([]string, error) {
		s, err := bp.Run(ctx, e, bp.Options{Updates: 50_000})
		if err != nil || s.Contradiction >= 0 {
			return []string{"contradiction=true"}, err
		}
		f, err := region.Plan(ctx, e.Hypergraph(), o)
		if err != nil {
			return nil, err
		}
		r, err := region.Run(ctx, e, s, f, threads)
		if err != nil {
			return nil, err
		}
		return []string{"lnz=" + bits(r.LnZ), "linear=" + bits(r.LnZLinear), "mar=" + many(r.Marginals...),
			"regions=" + bits(float64(r.Regions))}, nil
	}
}

func TestEngines(t *testing.T) {
	here(t)
	ctx, got := context.Background(), newGoldens()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for network, net := range engineNetworks(ctx) {
		e, err := lower.Build(ctx, net)
		if err != nil {
			t.Fatal(err)
		}
		for name, run := range engines {
			ask := func(threads int) string {
				fields, err := run(ctx, net, e, threads)
				if err != nil {
					return "code=" + string(fault.CodeOf(err))
				}
				return strings.Join(fields, " ")
			}
			group.Go(func() error {
				one, four := ask(1), ask(4)
				if one != four {
					t.Error("one thread and four:", compare(network+" "+name, one, four).text)
				}
				got.add(network+" "+name, one)
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	got.hold(t, "engines", meant, nil)
}
