package exchangeable

// Contraction: Z, marginals, joint marginals.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// evaluation is a form whose terms are added up.
type evaluation interface {
	lnZ() logarithm
	relativeError() float64                             // bounds the error of ln Z, nats
	marginals(ctx context.Context) ([][]float64, error) // P(x) by variable and value
	draw(ctx context.Context, want btn.Want) (*btn.Drawn, error)
}

// Contract implements contraction.Contractor: it adds up the terms of the part's share of the count vectors, from p.From to p.To of
// WholeShare, and computes what is wanted beside Z. If the sum does not go over all count vectors but value by value or class by class,
// the first part has the whole sum, and the others have Z = 0.
func (p *Sum) Contract(ctx context.Context, problem *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, problem, want)
	if err != nil {
		return btn.Value{}, err
	}
	isMPE := p.Ask == btn.AskMPE
	f, err := formOf(ctx, problem, p, want.Joint, isMPE)
	if err != nil {
		return btn.Value{}, err
	}
	splits := p.Ask != "" || f.needsSplit(want.Marginals) // count vectors have the counts of every group
	value := btn.Value{Flops: f.cost(splits, j.Memory).Flops * float64(p.To-p.From) / float64(WholeShare)}

	if isMPE || want.Joint != nil { // these need the terms of all count vectors
		return f.contractVectors(ctx, p, j, value, splits)
	}

	// All else may be summed in any way.
	evaluated, err := f.evaluate(ctx, splits, p, j.Threads, j.Memory)
	if err != nil {
		return btn.Value{}, err
	}
	if evaluated == nil { // the first part has the whole sum, and all flops
		if j.Marginals != nil {
			value.Marginals = j.Marginals.Result(scaled.One) // zeros
		}
		return btn.Value{Marginals: value.Marginals}, nil
	}
	if p.Ask == btn.AskSamples {
		if value.Drawn, err = evaluated.draw(ctx, want); value.Drawn != nil {
			value.Drawn.Weight = value.Drawn.Weight.Mul(j.Net.Scale)
		}
		return value, err
	}
	err = f.fillValue(&value, j, evaluated)
	return value, err
}

// contractVectors finds the most probable assignment, or the joint marginal with Z and the marginals, from the terms of all count vectors
// of the part, p.From to p.To. It adds them to a value that has the flops. With splits a vector has the counts of every group of a class,
// the variables with the same weights.
func (f *form) contractVectors(
	ctx context.Context, p *Sum, j contraction.Contraction, value btn.Value, splits bool,
) (btn.Value, error) {
	summed, err := f.sum(ctx, splits, p, j.Threads, j.Memory)
	if err != nil {
		return btn.Value{}, err
	}
	if p.Ask == btn.AskMPE {
		if value.Found, err = summed.findBest(ctx); value.Found != nil {
			value.Found.Weight = value.Found.Weight.Mul(j.Net.Scale)
		}
		return value, err
	}
	if err := f.fillValue(&value, j, summed); err != nil {
		return btn.Value{}, err
	}
	var cells []float64 // none if Z is 0
	if !summed.lnZ().isImpossible() {
		cells = summed.joint(j.Joint)
	}
	value.Joint = j.JointValue(cells, value.Z)
	return value, nil
}

// evaluate adds up the terms of a share, the part of the sum over the count vectors from share.From to share.To: vector by vector if there
// are few, otherwise value by value, otherwise class by class. The latter two are done for the whole sum at once, by the share that begins
// at 0; the result is nil for other shares. With splits a vector has the counts of every group of a class, the variables with the same
// weights. The error is over budget if no way fits.
func (f *form) evaluate(ctx context.Context, splits bool, share *Sum, threads int, memory int64) (evaluation, error) {
	if f.checkSize(splits, memory) == nil {
		return f.sum(ctx, splits, share, threads, memory)
	}
	if share.From > 0 {
		return nil, nil
	}
	if byValue := f.valueByValue(); byValue != nil {
		return byValue, byValue.fillWeights(ctx)
	}
	elimination := f.eliminationWithin(splits, memory)
	if elimination == nil {
		return nil, f.checkSize(splits, memory) // the error of the first way
	}
	lists, err := f.makeLists(ctx, splits)
	if err != nil {
		return nil, err
	}
	byClass := &eliminated{form: f, elimination: elimination, lists: lists}
	return byClass, byClass.sumOutAll(ctx, threads)
}

// fillValue sets Z of a value, the bound of its error, and the marginals if they are wanted. If Z is 0, marginals are 0, too.
func (f *form) fillValue(value *btn.Value, j contraction.Contraction, evaluated evaluation) error {
	ln := evaluated.lnZ()
	if ln.isImpossible() {
		if j.Marginals != nil {
			value.Marginals = j.Marginals.Result(scaled.One) // zeros
		}
		return nil
	}
	value.Z = ln.number().Mul(j.Net.Scale)
	rounding := value.Z.Abs().Mul(scaled.FromFloat(f.lnError + evaluated.relativeError()))
	value.Rounding = &rounding
	if j.Marginals == nil {
		return nil
	}
	rows, err := evaluated.marginals(j.Ctx)
	if err == nil {
		value.Marginals = j.ScaledMarginals(rows, value.Z)
	}
	return err
}

// summedForm is a form with the terms of all its count vectors.
type summedForm struct {
	*form
	*termSum
}

// relativeError implements evaluation. No term is below 0, so the relative error of a term bounds that of the sum.
func (c *summedForm) relativeError() float64 { return math.Ldexp(c.roundings, -53) }

// needsSplit reports whether count vectors need the counts of every group of a class, the variables with the same weights: for the
// marginals of leaves, which need those of their neighbours' groups.
func (f *form) needsSplit(marginals bool) bool {
	return marginals && len(f.interactions.conditionals) > 0
}

// marginals returns P(x) by variable and value. Z is above 0.
func (c *summedForm) marginals(ctx context.Context) ([][]float64, error) {
	return c.marginalRows(ctx, c.lists, c.distributions(), c.jointOf)
}

// marginalRows returns P(x) by variable and value. distributions[c] are the probabilities of the count vectors of class c, lists[c].
// jointOf returns the probabilities of the vectors of two classes together, the second class fastest: leaves with two neighbours need them.
// A group is the variables of a class with the same weights. Probabilities of a group are by the class's value; canonical gives the class's
// value for a variable's own value.
func (f *form) marginalRows(
	ctx context.Context, lists []*list, distributions [][]float64, jointOf func(classes []int) []float64,
) ([][]float64, error) {
	rows := make([][]float64, len(f.weights))
	for class, l := range lists {
		groupRows, err := l.groupMarginals(ctx, distributions[class])
		if err != nil {
			return nil, err
		}
		for k, g := range l.groups {
			for _, v := range g.variables {
				rows[v] = make([]float64, l.values)
				for x := range rows[v] {
					rows[v][x] = groupRows[k][f.partition.canonical(v, x)]
				}
			}
		}
	}
	// The leaves, variables that were summed out, follow from their neighbours.
	return rows, f.leafMarginals(ctx, newPairs(lists, distributions, jointOf), rows)
}

// place is the class and the group of a variable.
type place struct{ class, group int }

// places returns, by variable, the number of its class, and in it of its group, the variables with the same weights. Leaves have none.
func (f *form) places() []place {
	list := make([]place, len(f.weights))
	for c, groups := range f.fields.groups {
		for k, g := range groups {
			for _, v := range g.variables {
				list[v] = place{c, k}
			}
		}
	}
	return list
}

// leafMarginals sets the rows of the leaves, variables that were summed out: P(h) = Σ P(neighbours) P(h | neighbours) for value h. A leaf
// has at most two neighbours. rows has the marginals of all other variables, and pairProbabilities the joint ones of two neighbours; it may
// be nil if no leaf has two. A conditional has ln P(h | neighbours), not normalised, in table, and ln of the sum over h in sum.
func (f *form) leafMarginals(ctx context.Context, pairProbabilities *pairs, rows [][]float64) error {
	m := f.interactions
	places := f.places()
	for v, l := range m.leafOf {
		if l == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		d := m.domains[v]
		conditional := m.conditionals[int32(v)]
		if len(l.neighbours) < 2 {
			conditional = f.fields.leaves[int32(v)]
		}
		probability := f.neighbourProbabilities(l, places, pairProbabilities, rows)
		rows[v] = make([]float64, d)
		for row, sum := range conditional.sum {
			p := probability(row)
			if p == 0 || sum.isImpossible() {
				continue
			}
			for x := range d {
				if ln := conditional.table[row*d+x]; !ln.isImpossible() {
					rows[v][x] += p * math.Exp(ln.minus(sum).float())
				}
			}
		}
	}
	return nil
}

// neighbourProbabilities returns a function of row: the probability that a leaf's neighbours have combination of values number row, the
// last neighbour's value fastest. A leaf has at most two neighbours. rows has the marginals of single variables by their own values.
// pairProbabilities has those of two, by the class's values, which canonical gives for the variables' own.
func (f *form) neighbourProbabilities(l *leaf, places []place, pairProbabilities *pairs, rows [][]float64) func(row int) float64 {
	switch len(l.neighbours) {
	case 0:
		return func(int) float64 { return 1 }
	case 1:
		return func(row int) float64 { return rows[l.neighbours[0]][row] }
	default:
		i, j := l.neighbours[0], l.neighbours[1]
		pair := pairProbabilities.probabilities(places[i], places[j]) // the value of j fastest
		domain, canonical := f.interactions.domains[j], f.partition.canonical
		values := f.values(places[j].class)
		return func(row int) float64 { return pair[canonical(i, row/domain)*values+canonical(j, row%domain)] }
	}
}

// pairs computes the joint probabilities of two variables, which depend on their classes and groups only, and remembers them.
type pairs struct {
	lists          []*list                       // by class
	distributions  [][]float64                   // by class: the probabilities of its count vectors
	jointOf        func(classes []int) []float64 // the probabilities of the vectors of two classes, the second fastest
	cached         map[[2]place][]float64        // results
	jointOfClasses map[[2]int][]float64          // results of jointOf
}

// newPairs returns pairs without results. Its arguments are those of marginalRows.
func newPairs(lists []*list, distributions [][]float64, jointOf func([]int) []float64) *pairs {
	return &pairs{
		lists: lists, distributions: distributions, jointOf: jointOf,
		cached: map[[2]place][]float64{}, jointOfClasses: map[[2]int][]float64{},
	}
}

// probabilities returns P(x_i, x_j) of two different variables, given the class and group of each, the second one's value fastest. If c_x
// of n variables of a group have value x, a variable has it with probability c_x/n, and two have it with c_x(c_x − 1)/(n(n − 1)).
func (p *pairs) probabilities(first, second place) []float64 {
	if cached, ok := p.cached[[2]place{first, second}]; ok {
		return cached
	}
	firstList, secondList := p.lists[first.class], p.lists[second.class]
	table := make([]float64, firstList.values*secondList.values)
	n := float64(len(firstList.groups[first.group].variables))
	m := float64(len(secondList.groups[second.group].variables))
	switch {
	case first == second:
		p.addPairs(first, table)
	case first.class == second.class: // of two groups of one class
		for index, w := range p.distributions[first.class] {
			addProducts(table, firstList.groupCounts(index, first.group), secondList.groupCounts(index, second.group), w/(n*m))
		}
	default: // of two classes
		key := [2]int{first.class, second.class}
		joint, ok := p.jointOfClasses[key]
		if !ok {
			joint = p.jointOf(key[:])
			p.jointOfClasses[key] = joint
		}
		for index, w := range joint { // the vector of the second class is fastest
			if w > 0 {
				firstCounts := firstList.groupCounts(index/secondList.size, first.group)
				secondCounts := secondList.groupCounts(index%secondList.size, second.group)
				addProducts(table, firstCounts, secondCounts, w/(n*m))
			}
		}
	}
	p.cached[[2]place{first, second}] = table
	return table
}

// addPairs adds to table P(x, y) of two variables of one place, a group of n variables, y fastest: the mean over the count vectors c of
// c_x c_y, or of c_x(c_x − 1) if y = x, over n(n − 1).
func (p *pairs) addPairs(at place, table []float64) {
	l := p.lists[at.class]
	n := float64(len(l.groups[at.group].variables)) // at least 2
	for index, w := range p.distributions[at.class] {
		counts := l.groupCounts(index, at.group)
		for x, c := range counts {
			for y, e := range counts {
				pairCount := float64(c) * float64(e)
				if x == y {
					pairCount = float64(c) * float64(c-1)
				}
				table[x*l.values+y] += w * pairCount / (n * (n - 1))
			}
		}
	}
}

// addProducts adds w · a[x] · b[y] to entry (x, y) of a table, for two lists of counts. The table has y fastest.
func addProducts(table []float64, a, b []int32, w float64) {
	for x, c := range a {
		if c > 0 {
			for y, e := range b {
				table[x*len(b)+y] += w * float64(c) * float64(e)
			}
		}
	}
}

// joint returns the joint marginal of variables, each of which is a class of its own, the last variable fastest. A count vector of such a
// class has a single 1, at the class's value, which canonical gives for the variable's own value. Z is above 0.
func (c *summedForm) joint(variables []int) []float64 {
	classes := make([]int, len(variables))
	size := 1
	for k, v := range variables {
		classes[k] = int(c.partition.classOf[v])
		size *= len(c.weights[v])
	}
	cells := make([]float64, size)
	for index, w := range c.jointOf(classes) { // one vector of each class, the last class fastest
		cell := 0 // the variables' own values as digits
		for k, classValue := range c.valuesOfVectors(classes, index) {
			v := variables[k]
			for x := range c.weights[v] {
				if c.partition.canonical(int32(v), x) == classValue {
					cell = cell*len(c.weights[v]) + x
					break
				}
			}
		}
		cells[cell] += w
	}
	return cells
}

// valuesOfVectors returns, for classes of one variable each, the class's value of each variable, given the number index of a combination of
// their count vectors, the last class fastest. Each vector has a single 1, at that value.
func (c *summedForm) valuesOfVectors(classes []int, index int) []int {
	values := make([]int, len(classes))
	for k := len(classes) - 1; k >= 0; k-- {
		l := c.lists[classes[k]]
		values[k] = slices.Index(l.count(index%l.size), 1)
		index /= l.size
	}
	return values
}
