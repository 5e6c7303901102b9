package plan_test

// Models whose structure no file declares, from their plain tables, beside the count of their states.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// kept remembers all plans.
type kept map[string]*btn.Plan

// Do is part of plan.Memo.
func (k kept) Do(ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error)) (*btn.Plan, bool, error) {
	if p := k[key]; p != nil {
		return p, true, nil
	}
	p, err := compute(ctx)
	if err == nil {
		k[key] = p
	}
	return p, false, err
}

// summary is all that the future of a sum over states depends on: the statistics that are not complete, and the values of the spins that
// have a sparse pair with a later one.
type summary struct {
	statistics [6]int16
	open       uint64
}

// alone returns the structure of persons, with friendships summed out under the evidence, the evidence of persons, and the rest of ln Z.
func alone(p *generate.Planted, evidence factorgraph.Evidence) (*generate.Planted, factorgraph.Evidence, float64) {
	n, f := len(p.Field)/p.Domain/2, p.Friends
	ln := float64(n*(n-1)/2) * f.Ln
	persons, out := *p, factorgraph.Evidence{}
	at := 2 * n
	pairs := map[int][2]int{}
	for i := range n {
		for j := i + 1; j < n; j++ {
			pairs[at] = [2]int{i, j}
			at++
		}
	}
	weigh := func(v int, no, yes float64) {
		equal, other := no+yes*f.Odds, no+yes*f.Odds*f.Rule
		persons.Sparse = append(slices.Clip(persons.Sparse), generate.Coupled{
			I: 2 * pairs[v][0], J: 2 * pairs[v][1], Coupling: math.Log(equal/other)/2 - p.Lambda[0],
		})
		ln += math.Log(equal*other)/2 - f.Ln
	}
	for _, o := range evidence.Hard {
		if o.Var < 2*n {
			out.Hard = append(out.Hard, o)
			continue
		}
		weigh(o.Var, float64(1-o.Value), float64(o.Value))
	}
	for _, l := range evidence.Soft {
		if l.Var < 2*n {
			out.Soft = append(out.Soft, l)
			continue
		}
		weigh(l.Var, l.Weights[0], l.Weights[1])
	}
	return &persons, out, ln
}

// counted is ln Z of a planted structure under evidence, by summaries of the first i variables. Vectors are whole numbers.
func counted(p *generate.Planted, evidence factorgraph.Evidence) float64 {
	rest := 0.0
	if p.Friends != nil {
		p, evidence, rest = alone(p, evidence)
	}
	n := len(p.Field) / p.Domain
	field := slices.Clone(p.Field)
	for _, o := range evidence.Hard {
		for x := range p.Domain {
			if x != o.Value {
				field[o.Var*p.Domain+x] = math.Inf(-1)
			}
		}
	}
	for _, l := range evidence.Soft {
		for x, w := range l.Weights {
			field[l.Var*p.Domain+x] += math.Log(w)
		}
	}
	if p.Groups != nil {
		return group(p, field)
	}
	if p.Triples != nil {
		return threes(p, field)
	}
	last := make([]int, len(p.Lambda)) // variable of each statistic
	for k, v := range p.Vectors {
		for at, x := range v {
			if x != 0 {
				last[k] = at / p.Domain
			}
		}
	}
	before, until := make([][]generate.Coupled, n), make([]int, n)
	for _, c := range p.Sparse {
		before[c.J] = append(before[c.J], c)
		until[c.I] = max(until[c.I], c.J)
	}
	weights, ln := map[summary]float64{{}: 1}, 0.0
	var open []int
	for i := range n {
		var after []int
		for _, v := range append(slices.Clone(open), i) {
			if until[v] > i {
				after = append(after, v)
			}
		}
		next, most := map[summary]float64{}, 0.0
		for s, w := range weights {
			for x := range p.Domain {
				to, change := s, field[i*p.Domain+x]
				for k, lambda := range p.Lambda {
					v := p.Vectors[k][i*p.Domain+x]
					to.statistics[k] += int16(v)
					change -= lambda / 2 * v * v
					if last[k] == i {
						change += lambda / 2 * float64(to.statistics[k]) * float64(to.statistics[k])
						to.statistics[k] = 0
					}
				}
				value := func(v int) uint64 {
					if v == i {
						return uint64(x)
					}
					return s.open >> slices.Index(open, v) & 1
				}
				for _, c := range before[i] {
					change += c.Coupling * float64(2*int(value(c.I))-1) * float64(2*x-1)
				}
				to.open = 0
				for place, v := range after {
					to.open |= value(v) << place
				}
				if f := w * math.Exp(change); f > 0 {
					next[to] += f
					most = max(most, next[to])
				}
			}
		}
		for s := range next {
			next[s] /= most
		}
		weights, open, ln = next, after, ln+math.Log(most)
	}
	return rest + ln + math.Log(weights[summary{}])
}

// threes is ln Z of spins in tables of three, with these fields, by the number of spins of each group that are as its statistic has them.
// Of n spins with the sum m, the products of two add up to (m² − n)/2, and of three to (m³ − (3n − 2)·m)/6.
func threes(p *generate.Planted, field []float64) float64 {
	groups := len(p.Vectors)
	weight, size := make([][]float64, groups), make([]float64, groups)
	for g, v := range p.Vectors {
		weight[g] = []float64{1}
		for at := 0; at < len(v); at += 2 {
			if v[at] == 0 {
				continue
			}
			down, up := math.Exp(field[at]), math.Exp(field[at+1])
			if v[at] > 0 {
				down, up = up, down
			}
			next := make([]float64, len(weight[g])+1)
			for c, w := range weight[g] {
				next[c] += w * down
				next[c+1] += w * up
			}
			weight[g] = next
			size[g]++
		}
	}
	var terms []float64
	var over func(sums []float64, ln float64)
	over = func(sums []float64, ln float64) {
		if g := len(sums); g < groups {
			for c, w := range weight[g] {
				over(append(sums[:g:g], float64(2*c)-size[g]), ln+math.Log(w))
			}
			return
		}
		for at, j := range p.Triples {
			a, b, c := at/groups/groups, at/groups%groups, at%groups
			ma, mb, mc := sums[a], sums[b], sums[c]
			switch {
			case a > b || b > c:
			case a == c:
				ln += j * ma * (ma*ma - (3*size[a] - 2)) / 6
			case a == b:
				ln += j * (ma*ma - size[a]) / 2 * mc
			case b == c:
				ln += j * ma * (mb*mb - size[b]) / 2
			default:
				ln += j * ma * mb * mc
			}
		}
		terms = append(terms, ln)
	}
	over(nil, 0)
	most, sum := slices.Max(terms), 0.0
	for _, ln := range terms {
		sum += math.Exp(ln - most)
	}
	return most + math.Log(sum)
}

// group is ln Z of sets of spins that overlap with the next set alone, with these fields: by the number of spins up among the common ones
// for tables of numbers, by the product of each set for mixtures.
func group(p *generate.Planted, field []float64) float64 {
	sets := map[[2]int][]int{} // variables by the sets that have them, −1: none
	of := make([][2]int, len(field)/2)
	for v := range of {
		of[v] = [2]int{-1, -1}
	}
	for g, list := range p.Groups {
		for _, v := range list {
			if of[v][0] < 0 {
				of[v][0] = g
			}
			of[v][1] = g
		}
	}
	for v, key := range of {
		sets[key] = append(sets[key], v)
	}
	weigh := func(v int, k ...int) []float64 { // of the values, under products
		w := []float64{math.Exp(field[2*v]), math.Exp(field[2*v+1])}
		for _, k := range k {
			for x := range w {
				w[x] *= math.Exp(p.Lambda[k] * p.Vectors[k][2*v+x])
			}
		}
		return w
	}
	up := func(list []int) []float64 { // by number
		w := []float64{1}
		for _, v := range list {
			own, next := weigh(v), make([]float64, len(w)+1)
			for c, x := range w {
				next[c] += own[0] * x
				next[c+1] += own[1] * x
			}
			w = next
		}
		return w
	}
	product := func(list []int, k ...int) float64 {
		all := 1.0
		for _, v := range list {
			w := weigh(v, k...)
			all *= w[0] + w[1]
		}
		return all
	}
	ln := math.Log(product(sets[[2]int{-1, -1}]))
	before := []float64{1} // by the state of the set before
	for g := range p.Groups {
		var after []float64
		alone, left, right := sets[[2]int{g, g}], sets[[2]int{g - 1, g}], sets[[2]int{g, g + 1}]
		if p.Counts == nil {
			for k := range p.Vectors {
				sum := 0.0
				for last, w := range before {
					sum += w * product(left, last, k)
				}
				after = append(after, sum*product(alone, k))
			}
		} else {
			for c, w := range up(right) {
				sum := 0.0
				for a, x := range up(alone) {
					for b, y := range before {
						sum += x * y * math.Exp(p.Counts[a+b+c])
					}
				}
				after = append(after, sum*w)
			}
		}
		most := slices.Max(after)
		for k := range after {
			after[k] /= most
		}
		before, ln = after, ln+math.Log(most)
	}
	total := 0.0
	for _, w := range before {
		total += w
	}
	return ln + math.Log(total)
}

// someEvidence observes a tenth of a model's variables, and weighs the values of as many; of friendships one and two.
func someEvidence(rng *rand.Rand, m *factorgraph.Model, p *generate.Planted) (e factorgraph.Evidence) {
	n := len(p.Field) / p.Domain
	kinds := make([]int, len(m.Domains))
	for v := range kinds {
		if kinds[v] = 2; v < n {
			kinds[v] = rng.IntN(10)
		}
	}
	if friends := kinds[n:]; len(friends) > 2 {
		some := rng.Perm(len(friends))
		friends[some[0]], friends[some[1]], friends[some[2]] = 0, 1, 1
	}
	for v, d := range m.Domains {
		switch kinds[v] {
		case 0:
			e.Hard = append(e.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(d)})
		case 1:
			w := make([]float64, d)
			for x := range w {
				w[x] = 0.1 + rng.Float64()
			}
			e.Soft = append(e.Soft, factorgraph.Likelihood{Var: v, Weights: w})
		}
	}
	return e
}

// drawn is a model with its structure.
func drawn(t *testing.T, o generate.Latent) (*factorgraph.Model, *generate.Planted) {
	t.Helper()
	m, err := o.Model()
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Planted()
	if err != nil {
		t.Fatal(err)
	}
	return m, p
}

// TestCountsOfPlantedStates: the truth of the tests here beside enumeration.
func TestCountsOfPlantedStates(t *testing.T) {
	for _, family := range generate.LatentFamilies() {
		o := generate.Latent{Family: family, Variables: 8, Rank: 2, Coupling: 1.5, Field: 0.3, Seed: 3}
		switch family {
		case "smokers":
			o.Variables = 4 // and 10 other variables
		case "symmetric", "mixture":
			o.Variables = 21 // two sets
		}
		m, p := drawn(t, o)
		evidence := someEvidence(rand.New(rand.NewPCG(1, 2)), m, p)
		want := oracle.Ln(oracle.Z(m, evidence))
		if got := counted(p, evidence); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: ln Z %v by counts, %v by enumeration", family, got, want)
		}
	}
}

// TestLatentStructureIsFound: every family without noise is planned by its statistics and answered exactly, once for all evidence.
func TestLatentStructureIsFound(t *testing.T) {
	cases := []generate.Latent{
		{Family: "curie-weiss", Variables: 30},
		{Family: "curie-weiss", Variables: 300},
		{Family: "curie-weiss", Variables: 100, Coupling: -3},
		{Family: "mattis", Variables: 30},
		{Family: "mattis", Variables: 60},
		{Family: "mattis", Variables: 100},
		{Family: "rank", Variables: 30},
		{Family: "rank", Variables: 60},
		{Family: "rank", Variables: 100},
		{Family: "rank", Variables: 30, Rank: 2},
		{Family: "potts", Variables: 30},
		{Family: "potts", Variables: 60},
		{Family: "potts", Variables: 30, Values: 4},
		{Family: "hopfield", Variables: 30, Rank: 2},
		{Family: "hopfield", Variables: 30, Rank: 3},
		{Family: "blocks", Variables: 100},
		{Family: "blocks", Variables: 100, Rank: 3},
		{Family: "blocks", Variables: 80, Rank: 4, Seed: 2},
		{Family: "blocks", Variables: 100, Rank: 6},
		{Family: "chain", Variables: 30},
		{Family: "chain", Variables: 60, Rank: 2},
		{Family: "chain", Variables: 300},
		{Family: "grid", Variables: 30},
		{Family: "grid", Variables: 64},
		{Family: "three-body", Variables: 30},
		{Family: "three-body", Variables: 45},
		{Family: "three-body", Variables: 60, Coupling: -2},
		{Family: "three-body", Variables: 30, Rank: 2, Coupling: 8},
		{Family: "three-body", Variables: 45, Rank: 3, Coupling: 8},
		{Family: "three-body", Variables: 60, Rank: 2, Coupling: 8},
		{Family: "symmetric", Variables: 30},
		{Family: "symmetric", Variables: 65, Coupling: 3},
		{Family: "symmetric", Variables: 100},
		{Family: "mixture", Variables: 30},
		{Family: "mixture", Variables: 65, Rank: 4},
		{Family: "mixture", Variables: 100, Coupling: 4},
		{Family: "smokers", Variables: 30},
		{Family: "smokers", Variables: 60, Coupling: -2},
		{Family: "smokers", Variables: 100},
	}
	if nightly.On() {
		cases = append(cases, []generate.Latent{
			{Family: "rank", Variables: 100, Rank: 2},
			{Family: "rank", Variables: 30, Rank: 3},
			{Family: "potts", Variables: 100},
			{Family: "hopfield", Variables: 100, Rank: 2},
			{Family: "hopfield", Variables: 32, Rank: 4},
			{Family: "chain", Variables: 200, Rank: 2, Seed: 2},
			{Family: "grid", Variables: 50, Rank: 2, Seed: 3},
		}...)
	}
	for _, o := range cases {
		if o.Coupling == 0 {
			o.Coupling = 1.2
		}
		o.Field, o.Seed = 0.1, max(1, o.Seed)
		t.Run(fmt.Sprintf("%s/n=%d,k=%d,q=%d,J=%g,seed=%d", o.Family, o.Variables, o.Rank, o.Values, o.Coupling, o.Seed), func(t *testing.T) {
			m, p := drawn(t, o)
			rng := rand.New(rand.NewPCG(o.Seed, 7))
			evidences := make([]factorgraph.Evidence, 21)
			for e := range evidences[1:] {
				evidences[1+e] = someEvidence(rng, m, p)
			}
			memo := kept{}
			settings := query.Settings{Method: query.MethodAuto}
			net, err := stage.Reparameterise(t.Context(), m, settings)
			if err != nil {
				t.Fatal(err)
			}
			assignments, err := stage.Learn(t.Context(), net, []query.Query{{}}, settings, memo, nil)
			if err != nil {
				t.Fatal(err)
			}
			class := btn.ClassStructured
			switch o.Family {
			case "curie-weiss", "mattis", "rank", "potts", "hopfield", "blocks", "three-body", "smokers":
				class = btn.ClassExchangeable
			case "symmetric", "mixture": // of small width
				class = btn.ClassJunction
			}
			if a := assignments[0]; a.Error != nil || a.Plan.Estimates[0].Parts[0].Class() != class {
				t.Fatalf("not planned by its statistics: %s; %+v", stage.Describe(assignments), a.Error)
			}
			for e, evidence := range evidences[:3] {
				results, err := stage.Run(t.Context(), stage.Request{Model: m, Queries: []query.Query{{Evidence: evidence}}, Settings: settings}, memo)
				if err != nil {
					t.Fatal(err)
				}
				r := results[0]
				if r.Error != nil || !r.Exact || r.LogZ == nil {
					t.Fatalf("evidence %d: exact %v, %+v, %v", e, r.Exact, r.Error, r.Warnings)
				}
				if want := counted(p, evidence); !(math.Abs(*r.LogZ-want) <= 1e-9) {
					t.Errorf("evidence %d: ln Z %v, want %v: off by %.2g", e, *r.LogZ, want, *r.LogZ-want)
				}
			}
			var queries []query.Query
			for _, evidence := range evidences {
				queries = append(queries, query.Query{Evidence: evidence})
			}
			again, err := stage.Learn(t.Context(), net, queries, settings, memo, nil)
			if err != nil {
				t.Fatal(err)
			}
			for e, a := range again {
				if few := o.Variables < 60; few && a.Error == nil {
					continue // evidence may leave a network that elimination takes less for
				}
				if a.Error != nil || a.Cache != btn.CacheHit || a.Plan.Estimates[0].Parts[0].Class() != class {
					t.Errorf("evidence %d: cache %q, %+v", e, a.Cache, a.Error)
				}
			}
		})
	}
}

// TestOneFriendshipDiffers: ln Z of persons of whom two have another rule, in one direction, is right to 1e-9 however little it differs.
func TestOneFriendshipDiffers(t *testing.T) {
	for _, by := range []float64{0.3, 1e-6, 1e-9, 1e-12} {
		m, p := drawn(t, generate.Latent{Family: "smokers", Variables: 60, Coupling: 1.2, Field: 0.1, Seed: 2})
		for k, f := range m.Factors {
			if len(f.Scope) == 3 && f.Scope[0] == 6 && f.Scope[1] == 14 {
				table := *f.Table.(*tensor.Dense)
				table.Data = slices.Clone(table.Data)
				table.Data[3] *= 1 + by // the second smokes, the first does not, they are friends
				m.Factors[k].Table = &table
			}
		}
		// ln of the sum over the friendship changes by this where the first does not smoke and the second does, (1 − x)(1 + y)/4.
		ln := math.Log1p(by*p.Friends.Odds*p.Friends.Rule/(1+p.Friends.Odds*p.Friends.Rule)) / 4
		for x, sign := range []float64{-1, 1} {
			p.Field[2*6+x] -= sign * ln
			p.Field[2*14+x] += sign * ln
		}
		p.Sparse = append(p.Sparse, generate.Coupled{I: 6, J: 14, Coupling: -ln})
		settings := query.Settings{Method: query.MethodAuto}
		results, err := stage.Run(t.Context(), stage.Request{Model: m, Queries: []query.Query{{}}, Settings: settings}, kept{})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Error != nil || !r.Exact {
			t.Fatalf("by %g: exact %v, %+v", by, r.Exact, r.Error)
		}
		if want := ln + counted(p, factorgraph.Evidence{}); !(math.Abs(*r.LogZ-want) <= 1e-9) {
			t.Errorf("by %g: ln Z %v, want %v: off by %.2g", by, *r.LogZ, want, *r.LogZ-want)
		}
	}
}

// BenchmarkLatent is the table of docs/evaluation: seconds to find the structure, and to answer with all marginals from then on, the
// number of components, and the error of ln Z in 1e-12 nats.
func BenchmarkLatent(b *testing.B) {
	for _, o := range []generate.Latent{
		{Family: "curie-weiss", Variables: 100},
		{Family: "curie-weiss", Variables: 300},
		{Family: "curie-weiss", Variables: 1000},
		{Family: "curie-weiss", Variables: 1000, Coupling: -1.2},
		{Family: "mattis", Variables: 300},
		{Family: "rank", Variables: 300},
		{Family: "rank", Variables: 100, Rank: 2},
		{Family: "potts", Variables: 100},
		{Family: "hopfield", Variables: 100, Rank: 2},
		{Family: "hopfield", Variables: 300, Rank: 2},
		{Family: "blocks", Variables: 100, Rank: 3},
		{Family: "blocks", Variables: 60, Rank: 4},
		{Family: "chain", Variables: 300},
		{Family: "chain", Variables: 100, Rank: 2},
		{Family: "grid", Variables: 64},
		{Family: "three-body", Variables: 30},
		{Family: "three-body", Variables: 60, Coupling: -2},
	} {
		if o.Coupling == 0 {
			o.Coupling = 1.2
		}
		o.Field, o.Seed = 0.1, 1
		b.Run(fmt.Sprintf("%s/n=%d,k=%d,J=%g", o.Family, o.Variables, o.Rank, o.Coupling), func(b *testing.B) {
			m, err := o.Model()
			if err != nil {
				b.Fatal(err)
			}
			p, err := o.Planted()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				memo := kept{}
				q := []query.Query{{Marginals: true}}
				net, err := stage.Reparameterise(b.Context(), m, query.Settings{})
				if err != nil {
					b.Fatal(err)
				}
				begun := time.Now()
				if _, err := stage.Learn(b.Context(), net, q, query.Settings{}, memo, nil); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(time.Since(begun).Seconds(), "s-found")
				begun = time.Now()
				results, err := stage.Run(b.Context(), stage.Request{Model: m, Queries: q}, memo)
				if err != nil || !results[0].Exact {
					b.Fatal(err, results[0].Error)
				}
				b.ReportMetric(time.Since(begun).Seconds(), "s-answered")
				b.ReportMetric(max(results[0].Plan.Nodes, results[0].Plan.Counts), "terms")
				b.ReportMetric(1e12*math.Abs(*results[0].LogZ-counted(p, factorgraph.Evidence{})), "pnats")
			}
		})
	}
}
