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

// Class implements btn.Part.
func (*Cases) Class() btn.Class { return btn.ClassCases }

// About implements btn.Part.
func (*Cases) About() btn.About { return btn.About{KeepsRange: true, Differentiates: true} }

// Fits implements btn.Part: it returns an error if the part is invalid. Contract checks whether the tree is one over the network's tables.
func (p *Cases) Fits(*btn.Network) error {
	if !(p.Flops >= 0) || len(p.Merges)%2 != 0 || p.Tables < 0 {
		return btn.Misfit("a tree of %d tables and %d merged ones, %v flops", p.Tables, len(p.Merges), p.Flops)
	}
	return nil
}

// tree returns the contraction tree of the part.
func (p *Cases) tree() contractionorder.Tree {
	t := contractionorder.Tree{Leaves: p.Tables, Merges: make([][2]int, len(p.Merges)/2)}
	for k := range t.Merges {
		t.Merges[k] = [2]int{p.Merges[2*k], p.Merges[2*k+1]}
	}
	return t
}

// proposeCases proposes the sum of the ln-likelihoods of a query's cases, with its derivatives. The plan, which is for any cases of the
// network and has the price of one case, is remembered. The cost of the assignment is that of all cases; 0 stands for an unknown price.
func proposeCases(ctx context.Context, j *proposal.Job, cases *query.Cases) (*btn.Assignment, error) {
	p, err := PreparedOf(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	plan, cacheState, err := j.Remember(ctx, "cases", p.Hypergraph(), func(computing context.Context) (*btn.Plan, error) {
		return planCases(computing, j.Settings, p)
	})
	if err != nil {
		return nil, err
	}
	assignment := proposal.NewPricedAssignment(plan, cacheState)
	if n := float64(len(cases.Rows)); assignment.Cost.Flops > 0 {
		assignment.Cost.Flops = min(assignment.Cost.Flops*n, math.MaxFloat64)
	}
	if p.HasNegativeEntries() {
		assignment.Warnings = []string{signedDerivatives}
	}
	return assignment, nil
}

// planCases returns the plan for the cases of a network, with the price of one case: along a contraction tree that all cases share, if
// one fits memory and flops. Otherwise the plan has no tree, and the price is that of an elimination without evidence, or unknown (0) if
// that does not fit: the evidence of a case may make it fit.
func planCases(ctx context.Context, s query.Settings, p *Prepared) (*btn.Plan, error) {
	// A tree.
	if h, ok := junction.CaseShape(p.numbers()); ok {
		tree, isFound, err := treeOf(ctx, s, h)
		if err != nil {
			return nil, err
		}
		if isFound {
			_, cost := junction.Price(h, tree)                   // the price with all marginals: derivatives take as much
			cost.Bytes = 2*junction.Lanes*cost.Bytes + p.bytes() // tables of all lanes, forth and back, and the derivatives by parameters
			if cost.Bytes <= float64(s.Memory) && cost.Flops <= proposal.ExactFlopLimit(s) {
				return proposal.ExactPlan(cost, &Cases{Tables: tree.Leaves, Merges: slices.Concat(pairs(tree.Merges)...), Flops: cost.Flops}), nil
			}
		}
	}

	// No tree. If the error is over budget, cost is 0.
	_, cost, err := p.Plan(ctx, PlanOptions{Memory: s.Memory, Flops: proposal.ExactFlopLimit(s)})
	if err != nil && fault.CodeOf(err) != fault.OverBudget {
		return nil, err
	}
	return proposal.ExactPlan(cost, &Cases{Flops: cost.Flops}), nil
}

// pairs returns merges, of two tables each, as slices.
func pairs(merges [][2]int) [][]int {
	lists := make([][]int, len(merges))
	for k := range merges {
		lists[k] = merges[k][:]
	}
	return lists
}

// shapes remembers the trees of the shapes that were asked for last: tables that are fitted change, and their shapes do not.
var shapes = memo.LRU[[digest.Size]byte, foundTree]{Entries: 64, Bytes: 16 << 20}

// foundTree is the outcome of a search for a tree; ok is false if none fits.
type foundTree struct {
	tree contractionorder.Tree
	ok   bool
}

// treeOf returns a contraction tree of shape h without slices, by a search or from those that are remembered (shapes). It depends on the
// shape and the settings alone. isFound is false if the search found no tree without slices; that is remembered, too.
func treeOf(
	ctx context.Context, s query.Settings, h contractionorder.Hypergraph,
) (tree contractionorder.Tree, isFound bool, err error) {
	moves := min(policy.JunctionMoves, proposal.MoveLimit(s))
	d := digest.New()
	h.Digest(d)
	d.Raw(binary.AppendVarint(binary.AppendUvarint(nil, s.Seed), moves))
	key := d.Sum()
	if outcome, isKnown := shapes.Get(key); isKnown {
		return outcome.tree, outcome.ok, nil
	}

	result, err := contractionorder.Search(ctx, h, contractionorder.Options{
		Seed:    s.Seed,
		Moves:   moves,
		Effort:  policy.MarginalRate / policy.MoveCost, // moves worth saving one flop, which the derivatives multiply by MarginalRate
		Threads: 1,
	})
	if err != nil && fault.CodeOf(err) != fault.OverBudget {
		return contractionorder.Tree{}, false, err
	}
	outcome := foundTree{tree: result.Tree, ok: err == nil && len(result.Slices) == 0}
	shapes.Put(key, outcome, int64(16*len(result.Tree.Merges))) // bytes: two integers for each merge
	return outcome.tree, outcome.ok, nil
}

// numbers returns the network's tables, and which of them have parameters, in the form that package junction reads.
func (p *Prepared) numbers() junction.Numbers {
	return junction.Numbers{Net: p.net, Expression: p.floats, IsWanted: p.hasParameters}
}

// treeKey is the key of the compiled tree among the forms of a problem that are computed once.
type treeKey struct{}

// compileTree returns the junction tree that p describes, compiled for the tables of the network. It returns nil if p describes none
// (p.Tables is 0), if the tree does not fit the tables, or if digits of its tables may be lost: the cases are then summed without a tree. A
// tree is compiled once and kept with the instance.
func (p *Cases) compileTree(ctx context.Context, instance *problem.Problem, prepared *Prepared) (*junction.CaseTree, error) {
	if p.Tables == 0 {
		return nil, nil
	}
	return problem.Form(ctx, instance, treeKey{}, p, func() (*junction.CaseTree, error) {
		t, ok := junction.CompileCases(prepared.numbers(), p.tree())
		if !ok { // digits of its tables may be lost even without observations
			return nil, nil
		}
		return t, nil
	})
}

// Contract implements contraction.Contractor: it returns the sum of the ln-likelihoods of want.Cases, each times its weight, and its
// derivatives by the parameters of the cores if they are wanted.
func (p *Cases) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	if want.Cases == nil {
		return btn.Value{}, fault.New(fault.BadInput, "the query has no cases")
	}
	if err := query.Check(contraction.Domains(instance.Net), []query.Query{{Cases: want.Cases}}); err != nil {
		return btn.Value{}, err
	}
	prepared, err := PreparedOf(ctx, instance)
	if err != nil {
		return btn.Value{}, err
	}
	tree, err := p.compileTree(ctx, instance, prepared)
	if err != nil {
		return btn.Value{}, err
	}

	s := &caseSummer{
		ctx: ctx, Problem: instance, prepared: prepared, tree: tree, weights: want.Cases.Weights,
		sum: casesSum{impossible: -1}, // no case of probability 0 yet
	}
	if tree != nil {
		s.treeFlops = p.Flops
	}
	if want.Derivatives {
		s.byEntry, s.sum.byParameter = make([]float64, prepared.wantedEntries()), make([]float64, prepared.parameterCount)
	}
	if err := s.addAll(want.Cases); err != nil {
		return btn.Value{}, err
	}
	return s.value()
}

// caseSummer sums the ln-likelihoods of cases.
type caseSummer struct {
	ctx context.Context
	*problem.Problem
	prepared  *Prepared
	tree      *junction.CaseTree // nil: there is none
	weights   []float64          // by case; nil: all 1
	treeFlops float64            // of a case along the tree; 0: there is none
	byEntry   []float64          // derivatives by the entries of the tables that have parameters, table after table; nil: not wanted
	sum       casesSum
}

// casesSum is the sum over the cases so far.
type casesSum struct {
	ln          float64   // Σ weight · ln likelihood
	entryWeight float64   // weight of the cases whose derivatives are in byEntry, not in byParameter
	byParameter []float64 // derivatives by the parameters of all cores
	impossible  int       // the first case of probability 0; −1: none
	flops       float64
	doubt       string // why derivatives are not known to be exact
}

// weight returns the weight of a case in the sum, 1 by default.
func (s *caseSummer) weight(row int) float64 {
	if s.weights == nil {
		return 1
	}
	return s.weights[row]
}

// addAll adds all cases to the sum. A case is summed by its components if these are small, else along the junction tree. If there is no
// tree, or if digits of the case may be lost along the tree, the case is summed by an elimination of its own (addAlone).
func (s *caseSummer) addAll(cases *query.Cases) error {
	remaining, rows := s.addByComponents(cases)
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.tree != nil {
		var err error
		if rows, err = s.addAlongTree(remaining, rows); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := s.addAlone(row, s.observedValues(cases, row)); err != nil {
			return fault.New(fault.CodeOf(err), "case %d: %w", row, err)
		}
	}
	return nil
}

// addAlongTree adds cases to the sum along the junction tree. rows[k] is the row of cases[k]. It returns the rows of the cases that it has
// not added, because digits of them may be lost.
func (s *caseSummer) addAlongTree(cases []junction.Case, rows []int) (lossyRows []int, err error) {
	treeSum, err := s.tree.Sum(s.ctx, cases, s.byEntry != nil, junction.Options{Threads: s.Threads, Memory: s.Memory})
	if err != nil {
		return nil, err
	}
	s.sum.ln += treeSum.Ln
	s.sum.flops += treeSum.Flops
	for k, x := range treeSum.Gradient {
		s.byEntry[k] += x
	}
	for _, k := range treeSum.Impossible {
		s.exclude(rows[k])
	}
	for _, c := range cases {
		s.sum.entryWeight += c.Weight
	}
	for _, k := range treeSum.Lossy { // treeSum does not contain them
		lossyRows = append(lossyRows, rows[k])
		s.sum.entryWeight -= cases[k].Weight
	}
	return lossyRows, nil
}

// blockCases is the number of cases whose components are collected before they are summed.
const blockCases = 1 << 12

// addByComponents adds the cases to the sum whose components are small, in blocks of blockCases. A case of probability 0 is excluded,
// whether cutting it into components shows that or summing them. It returns the cases that could not be cut, and their row numbers.
func (s *caseSummer) addByComponents(cases *query.Cases) (remaining []junction.Case, rows []int) {
	cutter := s.prepared.newCutter(s.treeFlops) // nil: no case can be cut
	lnScale := s.prepared.floats.Scale.LogAbs()
	for row := range cases.Rows {
		values, weight := s.observedValues(cases, row), s.weight(row)
		isImpossible, isCut := false, false
		if cutter != nil {
			isImpossible, isCut = cutter.add(row, values, weight)
		}
		if !isCut {
			remaining, rows = append(remaining, junction.Case{Values: values, Weight: weight}), append(rows, row)
		}
		if isImpossible {
			s.exclude(row)
		}

		// Add the cases of a block that were cut.
		isBlockEnd := (row+1)%blockCases == 0 || row+1 == len(cases.Rows)
		if cutter != nil && isBlockEnd {
			s.sum.entryWeight += cutter.weight
			s.sum.ln += cutter.weight * lnScale // flush leaves the scale of the network out
			ln, flops := cutter.flush(s.byEntry, s.exclude)
			s.sum.ln += ln
			s.sum.flops += flops
			if s.ctx.Err() != nil {
				return nil, nil
			}
		}
	}
	return remaining, rows
}

// observedValues returns the values of a case by variable, −1 for variables that it does not observe.
func (s *caseSummer) observedValues(cases *query.Cases, row int) []int {
	values := slices.Repeat([]int{-1}, len(s.Net.Variables))
	for k, v := range cases.Variables {
		values[v] = cases.Rows[row][k]
	}
	return values
}

// exclude records that a case has probability 0. The first such case is kept.
func (s *caseSummer) exclude(row int) {
	if s.sum.impossible < 0 || row < s.sum.impossible {
		s.sum.impossible = row
	}
}

// addAlone adds a case to the sum by an elimination of the network under its observations. values has the value of each variable, −1 for
// those that are not observed. The error is bad_input if the weight of the case is below 0.
func (s *caseSummer) addAlone(row int, values []int) error {
	answer, err := s.answerAlone(values)
	if err != nil {
		return err
	}
	s.sum.flops += answer.Flops
	if answer.Doubt != "" {
		s.sum.doubt = answer.Doubt
	}
	switch {
	case answer.Z.IsZero():
		s.exclude(row)
		return nil
	case answer.Z.Sign() < 0:
		return fault.New(fault.BadInput, "its weight is below 0: the factors are no probability model")
	}

	// The derivatives of weight · ln Z are weight · (derivatives of Z) / Z.
	s.sum.ln += s.weight(row) * answer.Z.LogAbs()
	for k, x := range answer.Derivatives {
		if s.sum.byParameter != nil { // derivatives are wanted
			s.sum.byParameter[k] += scaled.FromFloat(s.weight(row)).Mul(x).Div(answer.Z).Float64()
		}
	}
	return nil
}

// answerAlone returns Z and its derivatives for the network under the observations of a case, by an elimination of its own.
func (s *caseSummer) answerAlone(values []int) (Answer, error) {
	var evidence factorgraph.Evidence
	for v, x := range values {
		if x >= 0 {
			evidence.Hard = append(evidence.Hard, factorgraph.Observation{Var: v, Value: x})
		}
	}
	net, err := s.Net.Condition(evidence)
	if err != nil {
		return Answer{}, err
	}
	p, err := Prepare(s.ctx, net)
	if err != nil {
		return Answer{}, err
	}
	plan, _, err := p.Plan(s.ctx, PlanOptions{Memory: s.Memory, Flops: policy.ExactFlops}) // not read: the price; the answer counts flops
	if err != nil {
		return Answer{}, err
	}
	return p.Answer(s.ctx, plan, Options{Memory: s.Memory, Threads: s.Threads, To: plan.Count}) // all slices
}

// value returns the sum over all cases, with the derivatives by the parameters of each core if they are wanted. If a case has probability
// 0, it returns the number of the first one instead, counted from 1. The error is unsupported if a derivative is beyond float64.
func (s *caseSummer) value() (btn.Value, error) {
	value := btn.Value{Flops: s.sum.flops, Doubt: s.sum.doubt, Cases: &btn.CasesValue{Ln: s.sum.ln}}
	if s.sum.impossible >= 0 {
		value.Cases = &btn.CasesValue{Impossible: 1 + s.sum.impossible}
		return value, nil
	}
	value.Z = scaled.FromLog(s.sum.ln)
	if s.byEntry == nil {
		return value, nil
	}
	s.addEntryDerivatives()
	for _, x := range s.sum.byParameter {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return value, fault.New(fault.Unsupported, "a derivative is beyond float64")
		}
	}
	// Cut the list, which has the parameters of all cores, core by core.
	derivatives := s.sum.byParameter
	for _, n := range s.prepared.ParameterCounts() {
		value.Cases.Gradients = append(value.Cases.Gradients, derivatives[:n:n])
		derivatives = derivatives[n:]
	}
	return value, nil
}

// addEntryDerivatives adds s.byEntry, the derivatives by the entries of tables, to the derivatives by parameters. source.Positions has, for
// each entry of a table, the position of the parameter in its core, or −1. An entry of the table is the parameter divided by
// 2^tableExponents[t], so its derivative is divided by that, too.
//
// A parameter p whose table has no other entry left is a factor of Z. Its derivative of weight · ln Z is weight / p, with
// s.sum.entryWeight, the weight of the cases whose derivatives are in s.byEntry.
func (s *caseSummer) addEntryDerivatives() {
	p := s.prepared
	firstOfCore, offset := p.firstParameters(), 0
	for t, source := range p.parametric.Sources {
		if !p.hasParameters[t] {
			continue
		}
		for k, parameter := range source.Positions {
			if x := s.byEntry[offset+k]; parameter >= 0 && x != 0 {
				s.sum.byParameter[firstOfCore[source.Core]+parameter] += math.Ldexp(x, int(-p.tableExponents[t]))
			}
		}
		offset += len(source.Positions)
	}
	for _, single := range p.parametric.ScaleParameters {
		if !single.Value.IsZero() {
			s.sum.byParameter[firstOfCore[single.Core]+single.Position] += scaled.FromFloat(s.sum.entryWeight).Div(single.Value).Float64()
		}
	}
}

// wantedEntries returns the number of entries of the tables that have parameters.
func (p *Prepared) wantedEntries() int {
	n := 0
	for t := range p.hasParameters {
		if p.hasParameters[t] {
			n += len(p.floats.Tables[t].Data)
		}
	}
	return n
}
