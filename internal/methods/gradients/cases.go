package gradients

// C = B for many cases at once: the sum of their ln-likelihoods, and its derivatives.

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Cases is B under each of a query's cases: Value.Cases. Cases that their observations cut into small components are sums over these, equal
// ones once. The others go eight at a time along a tree of the network without evidence (package junction), or, if digits may be lost there
// or there is no tree, each by an elimination of its own.
type Cases struct {
	Tables int     `msgpack:"tables,omitempty"` // leaves of the tree; 0: there is none
	Merges []int   `msgpack:"merges,omitempty"` // two tables per merge; merge k makes table Tables+k
	Flops  float64 `msgpack:"flops"`            // predicted, of a case
}

// Class implements Part.
func (*Cases) Class() btn.Class { return btn.ClassCases }

// About implements btn.Part.
func (*Cases) About() btn.About { return btn.About{KeepsRange: true, Differentiates: true} }

// Fits implements Part. Whether the tree is one over the network's tables is for the contraction to say.
func (p *Cases) Fits(*btn.Network) error {
	if !(p.Flops >= 0) || len(p.Merges)%2 != 0 || p.Tables < 0 {
		return btn.Misfit("a tree of %d tables and %d merged ones, %v flops", p.Tables, len(p.Merges), p.Flops)
	}
	return nil
}

// tree is the tree as one of the search.
func (p *Cases) tree() contractionorder.Tree {
	t := contractionorder.Tree{Leaves: p.Tables, Merges: make([][2]int, len(p.Merges)/2)}
	for k := range t.Merges {
		t.Merges[k] = [2]int{p.Merges[2*k], p.Merges[2*k+1]}
	}
	return t
}

// proposeCases is the proposal for the cases of a query. Its cost is that of all cases.
func proposeCases(ctx context.Context, j *proposal.Job, cases *query.Cases) (*btn.Assignment, error) {
	p, err := Of(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	plan, hit, err := j.Remember(ctx, "cases", p.Hypergraph(), func(computing context.Context) (*btn.Plan, error) {
		return planCases(computing, j.Settings, p)
	})
	if err != nil {
		return nil, err
	}
	assignment := proposal.Priced(plan, hit)
	if n := float64(len(cases.Rows)); assignment.Cost.Flops > 0 {
		assignment.Cost.Flops = min(assignment.Cost.Flops*n, math.MaxFloat64)
	}
	if p.Signed() {
		assignment.Warnings = []string{signedDerivatives}
	}
	return assignment, nil
}

// planCases searches a tree for all cases. Without one that fits, the price is that of an elimination without evidence, if that fits, and
// not known else: evidence may make it fit.
func planCases(ctx context.Context, s query.Settings, p *Prepared) (*btn.Plan, error) {
	if h, ok := junction.CaseShape(p.numbers()); ok {
		tree, ok, err := treeOf(ctx, s, h)
		if err != nil {
			return nil, err
		}
		if ok {
			_, cost := junction.Price(h, tree)
			if cost.Bytes = 2*junction.Lanes*cost.Bytes + p.bytes(); cost.Bytes <= float64(s.Memory) && cost.Flops <= proposal.Limit(s) {
				return proposal.Exact(cost, &Cases{Tables: tree.Leaves, Merges: slices.Concat(pairs(tree.Merges)...), Flops: cost.Flops}), nil
			}
		}
	}
	_, cost, err := p.Plan(ctx, PlanOptions{Memory: s.Memory, Flops: proposal.Limit(s)})
	if err != nil && fault.CodeOf(err) != fault.OverBudget {
		return nil, err
	}
	return proposal.Exact(cost, &Cases{Flops: cost.Flops}), nil
}

// pairs returns merges as lists.
func pairs(merges [][2]int) [][]int {
	lists := make([][]int, len(merges))
	for k := range merges {
		lists[k] = merges[k][:]
	}
	return lists
}

// shapes remembers the trees of the shapes that were asked for last: tables that are fitted change, and their shapes do not.
var shapes = memo.LRU[[digest.Size]byte, foundTree]{Entries: 64, Bytes: 16 << 20}

// foundTree is the outcome of a search.
type foundTree struct {
	tree contractionorder.Tree
	ok   bool
}

// treeOf searches a tree without slices, a function of the shape and the settings alone. ok is false if none fits the memory.
func treeOf(ctx context.Context, s query.Settings, h contractionorder.Hypergraph) (contractionorder.Tree, bool, error) {
	moves := min(policy.JunctionMoves, proposal.MoveLimit(s))
	d := digest.New()
	h.Digest(d)
	d.Raw(binary.AppendVarint(binary.AppendUvarint(nil, s.Seed), moves))
	key := d.Sum()
	if outcome, ok := shapes.Get(key); ok {
		return outcome.tree, outcome.ok, nil
	}
	result, err := contractionorder.Search(ctx, h, contractionorder.Options{
		Seed:    s.Seed,
		Moves:   moves,
		Effort:  policy.MarginalRate / policy.MoveCost,
		Threads: 1,
	})
	if err != nil && fault.CodeOf(err) != fault.OverBudget {
		return contractionorder.Tree{}, false, err
	}
	outcome := foundTree{result.Tree, err == nil && len(result.Slices) == 0}
	shapes.Put(key, outcome, int64(16*len(result.Tree.Merges)))
	return outcome.tree, outcome.ok, nil
}

// numbers is the network as a tree of cases reads it.
func (p *Prepared) numbers() junction.Numbers {
	return junction.Numbers{Net: p.net, Expression: p.floats, IsWanted: p.wanted}
}

// treeSlot is the place of the compiled tree among the forms of a problem.
type treeSlot struct{}

// compiled returns the tree of a problem's network, nil where it has none.
func (p *Cases) compiled(ctx context.Context, instance *problem.Problem, prepared *Prepared) (*junction.CaseTree, error) {
	if p.Tables == 0 {
		return nil, nil
	}
	return problem.Form(ctx, instance, treeSlot{}, p, func() (*junction.CaseTree, error) {
		t, _ := junction.CompileCases(prepared.numbers(), p.tree())
		return t, nil
	})
}

// Contract implements contraction.Contractor.
func (p *Cases) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	if want.Cases == nil {
		return btn.Value{}, fault.New(fault.BadInput, "the query has no cases")
	}
	if err := query.Check(contraction.Domains(instance.Net), []query.Query{{Cases: want.Cases}}); err != nil {
		return btn.Value{}, err
	}
	prepared, err := Of(ctx, instance)
	if err != nil {
		return btn.Value{}, err
	}
	tree, err := p.compiled(ctx, instance, prepared)
	if err != nil {
		return btn.Value{}, err
	}
	a := &adding{
		ctx: ctx, Problem: instance, prepared: prepared, tree: tree, weights: want.Cases.Weights,
		sum: casesSum{impossible: -1},
	}
	if tree != nil {
		a.flops = p.Flops
	}
	if want.Derivatives {
		a.by, a.sum.by = make([]float64, prepared.wantedEntries()), make([]float64, prepared.entries)
	}
	if err := a.all(want.Cases); err != nil {
		return btn.Value{}, err
	}
	return a.value()
}

// adding adds up cases.
type adding struct {
	ctx context.Context
	*problem.Problem
	prepared *Prepared
	tree     *junction.CaseTree
	weights  []float64 // nil: ones
	flops    float64   // of a case along the tree; 0: there is none
	by       []float64 // derivatives by the entries of the wanted tables, table after table; nil: not asked for
	sum      casesSum
}

// casesSum is what is known of cases.
type casesSum struct {
	ln         float64
	weight     float64   // of the cases that by does not have yet
	by         []float64 // derivatives by parameter
	impossible int       // the first case of probability 0; −1: none
	flops      float64
	doubt      string
}

// weight is how often a case counts.
func (a *adding) weight(row int) float64 {
	if a.weights == nil {
		return 1
	}
	return a.weights[row]
}

// all adds up all cases: those of small components, those along the tree, and those by themselves.
func (a *adding) all(cases *query.Cases) error {
	along, places := a.cut(cases)
	alone := places
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if a.tree != nil {
		s, err := a.tree.Sum(a.ctx, along, a.by != nil, junction.Options{Threads: a.Threads, Memory: a.Memory})
		if err != nil {
			return err
		}
		a.sum.ln += s.Ln
		a.sum.flops += s.Flops
		for k, x := range s.By {
			a.by[k] += x
		}
		for _, k := range s.Impossible {
			a.exclude(places[k])
		}
		alone = nil
		for _, c := range along {
			a.sum.weight += c.Weight
		}
		for _, k := range s.Beyond {
			alone = append(alone, places[k])
			a.sum.weight -= along[k].Weight
		}
	}
	for _, row := range alone {
		if err := a.alone(row, a.observed(cases, row)); err != nil {
			return fault.New(fault.CodeOf(err), "case %d: %w", row, err)
		}
	}
	return nil
}

// block is the number of cases whose components are kept at a time.
const block = 1 << 12

// cut adds up the cases whose components are small, and returns the others with their places.
func (a *adding) cut(cases *query.Cases) (along []junction.Case, places []int) {
	cutter := a.prepared.newCutter(a.flops)
	scale := a.prepared.floats.Scale.LogAbs()
	for row := range cases.Rows {
		values, weight := a.observed(cases, row), a.weight(row)
		impossible, ok := false, false
		if cutter != nil {
			impossible, ok = cutter.add(row, values, weight)
		}
		if !ok {
			along, places = append(along, junction.Case{Values: values, Weight: weight}), append(places, row)
		}
		if impossible {
			a.exclude(row)
		}
		if cutter != nil && ((row+1)%block == 0 || row+1 == len(cases.Rows)) {
			a.sum.weight, a.sum.ln = a.sum.weight+cutter.weight, a.sum.ln+cutter.weight*scale
			ln, flops := cutter.flush(a.by, a.exclude)
			a.sum.ln, a.sum.flops = a.sum.ln+ln, a.sum.flops+flops
			if a.ctx.Err() != nil {
				return nil, nil
			}
		}
	}
	return along, places
}

// observed returns the values of a case by variable, −1 for those that it does not observe.
func (a *adding) observed(cases *query.Cases, row int) []int {
	values := slices.Repeat([]int{-1}, len(a.Net.Variables))
	for k, v := range cases.Variables {
		values[v] = cases.Rows[row][k]
	}
	return values
}

// exclude notes a case of probability 0.
func (a *adding) exclude(row int) {
	if a.sum.impossible < 0 || row < a.sum.impossible {
		a.sum.impossible = row
	}
}

// alone adds a case by an elimination of its own.
func (a *adding) alone(row int, values []int) error {
	var evidence factorgraph.Evidence
	for v, x := range values {
		if x >= 0 {
			evidence.Hard = append(evidence.Hard, factorgraph.Observation{Var: v, Value: x})
		}
	}
	net, err := a.Net.Condition(evidence)
	if err != nil {
		return err
	}
	p, err := Prepare(a.ctx, net)
	if err != nil {
		return err
	}
	plan, _, err := p.Plan(a.ctx, PlanOptions{Memory: a.Memory, Flops: policy.ExactFlops})
	if err != nil {
		return err
	}
	answer, err := p.Answer(a.ctx, plan, Options{Memory: a.Memory, Threads: a.Threads, To: plan.Count})
	if err != nil {
		return err
	}
	a.sum.flops += answer.Flops
	if answer.Doubt != "" {
		a.sum.doubt = answer.Doubt
	}
	switch {
	case answer.Z.IsZero():
		a.exclude(row)
		return nil
	case answer.Z.Sign() < 0:
		return fault.New(fault.BadInput, "its weight is below 0: the factors are no probability model")
	}
	a.sum.ln += a.weight(row) * answer.Z.LogAbs()
	for k, x := range answer.By {
		if a.sum.by != nil {
			a.sum.by[k] += scaled.FromFloat(a.weight(row)).Mul(x).Div(answer.Z).Float64()
		}
	}
	return nil
}

// value is what was added up, by the parameters of the cores.
func (a *adding) value() (btn.Value, error) {
	value := btn.Value{Flops: a.sum.flops, Doubt: a.sum.doubt, Cases: &btn.CasesValue{Ln: a.sum.ln}}
	if a.sum.impossible >= 0 {
		value.Cases = &btn.CasesValue{Impossible: 1 + a.sum.impossible}
		return value, nil
	}
	value.Z = scaled.FromLog(a.sum.ln)
	if a.by == nil {
		return value, nil
	}
	a.distribute()
	for _, x := range a.sum.by {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return value, fault.New(fault.Unsupported, "a derivative is beyond float64")
		}
	}
	derivatives := a.sum.by
	for _, n := range a.prepared.Sizes() {
		value.Cases.Gradients = append(value.Cases.Gradients, derivatives[:n:n])
		derivatives = derivatives[n:]
	}
	return value, nil
}

// distribute adds the derivatives by the entries of tables to those by parameters, also of parameters that are factors of all.
func (a *adding) distribute() {
	p := a.prepared
	first, offset := p.firsts(), 0
	for t, source := range p.given.Sources {
		if !p.wanted[t] {
			continue
		}
		for k, place := range source.At {
			if x := a.by[offset+k]; place >= 0 && x != 0 {
				a.sum.by[first[source.Core]+place] += math.Ldexp(x, int(-p.divided[t]))
			}
		}
		offset += len(source.At)
	}
	for _, s := range p.given.Single {
		if !s.Value.IsZero() {
			a.sum.by[first[s.Core]+s.At] += scaled.FromFloat(a.sum.weight).Div(s.Value).Float64()
		}
	}
}

// wantedEntries counts the entries of the tables that have parameters.
func (p *Prepared) wantedEntries() int {
	n := 0
	for t := range p.wanted {
		if p.wanted[t] {
			n += len(p.floats.Tables[t].Data)
		}
	}
	return n
}
