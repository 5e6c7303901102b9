package exchangeable

// Contraction: Z, marginals, joint marginals.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// evaluation is a form whose terms are added up.
type evaluation interface {
	lnZ() logarithm
	relativeError() float64 // bounds the error of ln Z, nats
	marginals(ctx context.Context) ([][]float64, error)
	draw(ctx context.Context, want btn.Want) (*btn.Drawn, error)
}

// Contract implements contraction.Contractor. A share without terms of its own, as one after the first if classes are summed out one after
// the other, has Z = 0.
func (p *Sum) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}
	f, err := formOf(ctx, of, p, want.Joint, p.Ask == btn.AskMPE)
	if err != nil {
		return btn.Value{}, err
	}
	split := p.Ask != "" || f.needsSplit(want.Marginals)
	value := btn.Value{Flops: f.cost(split, j.Memory).Flops * float64(p.To-p.From) / float64(WholeShare)}
	if p.Ask == btn.AskMPE || want.Joint != nil {
		c, err := f.sum(ctx, split, p, j.Threads, j.Memory)
		if err != nil {
			return btn.Value{}, err
		}
		if p.Ask == btn.AskMPE {
			if value.Found, err = c.findBest(ctx); value.Found != nil {
				value.Found.Weight = value.Found.Weight.Mul(j.Net.Scale)
			}
			return value, err
		}
		if err := f.fillValue(&value, j, c); err != nil {
			return btn.Value{}, err
		}
		var cells []float64
		if !c.lnZ().isImpossible() {
			cells = c.joint(j.Joint)
		}
		value.Joint = j.JointValue(cells, value.Z)
		return value, nil
	}
	e, err := f.evaluate(ctx, split, p, j.Threads, j.Memory)
	if err != nil {
		return btn.Value{}, err
	}
	if e == nil { // another share has it
		if j.M != nil {
			value.Marginals = j.M.Result(scaled.One)
		}
		return btn.Value{Marginals: value.Marginals}, nil
	}
	if p.Ask == btn.AskSamples {
		if value.Drawn, err = e.draw(ctx, want); value.Drawn != nil {
			value.Drawn.Weight = value.Drawn.Weight.Mul(j.Net.Scale)
		}
		return value, err
	}
	err = f.fillValue(&value, j, e)
	return value, err
}

// evaluate adds up all terms of a share: over all count vectors if these are few, otherwise value by value, otherwise class by class. The
// latter two are whole sums and belong to the share that begins at 0: it returns nil for other shares. It is over budget if no way fits.
func (f *form) evaluate(ctx context.Context, split bool, share *Sum, threads int, memory int64) (evaluation, error) {
	if f.checkSize(split, memory) == nil {
		return f.sum(ctx, split, share, threads, memory)
	}
	if share.From > 0 {
		return nil, nil
	}
	if b := f.valueByValue(); b != nil {
		return b, b.fillWeights(ctx)
	}
	e := f.eliminationWithin(split, memory)
	if e == nil {
		return nil, f.checkSize(split, memory)
	}
	lists, err := f.makeLists(ctx, split)
	if err != nil {
		return nil, err
	}
	classes := &eliminated{form: f, elimination: e, lists: lists}
	return classes, classes.sumOutAll(ctx, threads)
}

// fillValue sets Z, the bound of its error, and the marginals if they are wanted.
func (f *form) fillValue(value *btn.Value, j contraction.Contraction, e evaluation) error {
	ln := e.lnZ()
	if ln.isImpossible() {
		if j.M != nil {
			value.Marginals = j.M.Result(scaled.One)
		}
		return nil
	}
	value.Z = ln.number().Mul(j.Net.Scale)
	rounding := value.Z.Abs().Mul(scaled.FromFloat(f.lnError + e.relativeError()))
	value.Rounding = &rounding
	if j.M == nil {
		return nil
	}
	rows, err := e.marginals(j.Ctx)
	if err == nil {
		value.Marginals = j.Weighted(rows, value.Z)
	}
	return err
}

// summedForm is a form with the terms of all its count vectors.
type summedForm struct {
	*form
	*termSum
}

// relativeError implements evaluation. No term is below 0, so that roundings of terms are those of the sum.
func (c *summedForm) relativeError() float64 { return math.Ldexp(c.roundings, -53) }

// needsSplit reports whether the counts of all groups have to be kept apart: marginals of leaves need those of their neighbours' groups.
func (f *form) needsSplit(marginals bool) bool {
	return marginals && len(f.interactions.conditionals) > 0
}

// marginals returns P(x) by variable and value. Z is above 0.
func (c *summedForm) marginals(ctx context.Context) ([][]float64, error) {
	return c.marginalRows(ctx, c.lists, c.distributions(), c.jointOf)
}

// marginalRows returns P(x) by variable and value, given the probabilities of every class's vectors. jointOf returns those of the vectors
// of two classes together, the second class fastest.
func (f *form) marginalRows(
	ctx context.Context, lists []*list, distributions [][]float64, jointOf func([]int) []float64,
) ([][]float64, error) {
	rows := make([][]float64, len(f.weights))
	for class, l := range lists {
		shares, err := l.groupMarginals(ctx, distributions[class])
		if err != nil {
			return nil, err
		}
		for k, g := range l.groups {
			for _, v := range g.variables {
				rows[v] = make([]float64, l.values)
				for x := range rows[v] {
					rows[v][x] = shares[k][f.partition.canonical(v, x)]
				}
			}
		}
	}
	return rows, f.leafMarginals(ctx, newPairs(lists, distributions, jointOf), rows)
}

// place is the class and the group of a variable.
type place struct{ class, group int }

// places returns, by variable, the class and the group. The entries of leaves are not used.
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

// leafMarginals fills in the rows of the leaves: P(h) = Σ P(neighbours) P(h | neighbours). rows has the marginals of all other variables,
// and pairProbabilities the joint ones of two neighbours.
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
		rows[v] = make([]float64, d)
		conditional := m.conditionals[int32(v)]
		if len(l.neighbours) < 2 {
			conditional = f.fields.leaves[int32(v)]
		}
		var probability func(row int) float64
		switch len(l.neighbours) {
		case 0:
			probability = func(int) float64 { return 1 }
		case 1:
			probability = func(row int) float64 { return rows[l.neighbours[0]][row] }
		default:
			i, j := l.neighbours[0], l.neighbours[1]
			pair := pairProbabilities.probabilities(places[i], places[j])
			width, canonical := m.domains[j], f.partition.canonical
			values := f.values(places[j].class)
			probability = func(row int) float64 { return pair[canonical(i, row/width)*values+canonical(j, row%width)] }
		}
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

// pairs are the joint probabilities of two variables by their places.
type pairs struct {
	lists          []*list
	distributions  [][]float64
	jointOf        func(classes []int) []float64
	cached         map[[2]place][]float64
	jointOfClasses map[[2]int][]float64
}

func newPairs(lists []*list, distributions [][]float64, jointOf func([]int) []float64) *pairs {
	return &pairs{lists, distributions, jointOf, map[[2]place][]float64{}, map[[2]int][]float64{}}
}

// probabilities returns P(x_i, x_j) of two different variables at some places, the second one's value fastest.
func (p *pairs) probabilities(a, b place) []float64 {
	if known, ok := p.cached[[2]place{a, b}]; ok {
		return known
	}
	first, second := p.lists[a.class], p.lists[b.class]
	out := make([]float64, first.values*second.values)
	n, m := float64(len(first.groups[a.group].variables)), float64(len(second.groups[b.group].variables))
	switch {
	case a == b:
		for index, w := range p.distributions[a.class] {
			counts := first.ofGroup(index, a.group)
			for x, c := range counts {
				for y, e := range counts {
					pairs := float64(c) * float64(e)
					if x == y {
						pairs = float64(c) * float64(c-1)
					}
					out[x*second.values+y] += w * pairs / (n * (n - 1))
				}
			}
		}
	case a.class == b.class:
		for index, w := range p.distributions[a.class] {
			addProducts(out, first.ofGroup(index, a.group), second.ofGroup(index, b.group), w/(n*m))
		}
	default:
		key := [2]int{a.class, b.class}
		joint, ok := p.jointOfClasses[key]
		if !ok {
			joint = p.jointOf(key[:])
			p.jointOfClasses[key] = joint
		}
		for index, w := range joint {
			if w > 0 {
				addProducts(out, first.ofGroup(index/second.size, a.group), second.ofGroup(index%second.size, b.group), w/(n*m))
			}
		}
	}
	p.cached[[2]place{a, b}] = out
	return out
}

// addProducts adds w · a[x] · b[y] to entry (x, y), for two lists of counts.
func addProducts(to []float64, a, b []int32, w float64) {
	for x, c := range a {
		if c > 0 {
			for y, e := range b {
				to[x*len(b)+y] += w * float64(c) * float64(e)
			}
		}
	}
}

// joint returns the joint marginal of variables that are classes of their own, the last variable fastest. Z is above 0.
func (c *summedForm) joint(variables []int) []float64 {
	classes := make([]int, len(variables))
	size := 1
	for k, v := range variables {
		classes[k] = int(c.partition.class[v])
		size *= len(c.weights[v])
	}
	cells := make([]float64, size)
	for index, w := range c.jointOf(classes) {
		vectors := index
		values := make([]int, len(variables)) // by the class
		for k := len(variables) - 1; k >= 0; k-- {
			l := c.lists[classes[k]]
			for x, c := range l.count(vectors % l.size) {
				if c > 0 {
					values[k] = x
				}
			}
			vectors /= l.size
		}
		cell := 0
		for k, v := range variables {
			for x := range c.weights[v] {
				if c.partition.canonical(int32(v), x) == values[k] {
					cell = cell*len(c.weights[v]) + x
					break
				}
			}
		}
		cells[cell] += w
	}
	return cells
}
