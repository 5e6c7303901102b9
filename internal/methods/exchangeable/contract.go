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
	certified() float64 // bounds the error of ln Z, nats
	marginals(ctx context.Context) ([][]float64, error)
	draw(ctx context.Context, want btn.Want) (*btn.Drawn, error)
}

// Contract implements contraction.Contractor.
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
			if value.Found, err = c.best(ctx); value.Found != nil {
				value.Found.Weight = value.Found.Weight.Mul(j.Net.Scale)
			}
			return value, err
		}
		if err := f.fill(&value, j, c); err != nil {
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
	err = f.fill(&value, j, e)
	return value, err
}

// evaluate adds up all terms of a share; nil if it has none.
func (f *form) evaluate(ctx context.Context, split bool, share *Sum, threads int, memory int64) (evaluation, error) {
	if f.fits(split, memory) == nil {
		return f.sum(ctx, split, share, threads, memory)
	}
	if share.From > 0 {
		return nil, nil
	}
	if b := f.byValue(); b != nil {
		return b, b.run(ctx)
	}
	e := f.inTurn(split, memory)
	if e == nil {
		return nil, f.fits(split, memory)
	}
	lists, err := f.makeLists(ctx, split)
	if err != nil {
		return nil, err
	}
	classes := &eliminated{form: f, elimination: e, lists: lists}
	return classes, classes.run(ctx, threads)
}

// fill sets Z, what bounds its error, and the marginals that are wanted.
func (f *form) fill(value *btn.Value, j contraction.Contraction, e evaluation) error {
	ln := e.lnZ()
	if ln.isImpossible() {
		if j.M != nil {
			value.Marginals = j.M.Result(scaled.One)
		}
		return nil
	}
	value.Z = ln.number().Mul(j.Net.Scale)
	rounding := value.Z.Abs().Mul(scaled.FromFloat(f.off + e.certified()))
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

// counted is a form with the terms of all its count vectors.
type counted struct {
	*form
	*total
}

// certified implements evaluation: no term is below 0.
func (c *counted) certified() float64 { return math.Ldexp(c.roundings, -53) }

// needsSplit reports whether the counts of all groups have to be kept apart: those of leaves' neighbours are, for the leaves' marginals.
func (f *form) needsSplit(marginals bool) bool {
	return marginals && len(f.interactions.conds) > 0
}

// marginals returns P(x) of every variable, of Z > 0.
func (c *counted) marginals(ctx context.Context) ([][]float64, error) {
	return c.rows(ctx, c.lists, c.distributions(), c.jointOf)
}

// rows returns P(x) of every variable, given the probabilities of every class's vectors. jointOf returns those of two classes together.
func (f *form) rows(ctx context.Context, lists []*list, distributions [][]float64, jointOf func([]int) []float64) ([][]float64, error) {
	rows := make([][]float64, len(f.weights))
	for class, l := range lists {
		shares, err := l.shares(ctx, distributions[class])
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

// places returns those of all variables that are no leaves.
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

// leafMarginals adds the rows of the leaves: P(h) = Σ P(neighbours) P(h | neighbours). of has those of two neighbours.
func (f *form) leafMarginals(ctx context.Context, of *pairs, rows [][]float64) error {
	m := f.interactions
	places := f.places()
	for v, l := range m.leaf {
		if l == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		d := m.domains[v]
		rows[v] = make([]float64, d)
		given := m.conds[int32(v)]
		if len(l.others) < 2 {
			given = f.fields.leaves[int32(v)]
		}
		var probability func(row int) float64
		switch len(l.others) {
		case 0:
			probability = func(int) float64 { return 1 }
		case 1:
			probability = func(row int) float64 { return rows[l.others[0]][row] }
		default:
			i, j := l.others[0], l.others[1]
			pair := of.pair(places[i], places[j])
			width, canonical := m.domains[j], f.partition.canonical
			values := f.values(places[j].class)
			probability = func(row int) float64 { return pair[canonical(i, row/width)*values+canonical(j, row%width)] }
		}
		for row, sum := range given.sum {
			p := probability(row)
			if p == 0 || sum.isImpossible() {
				continue
			}
			for x := range d {
				if ln := given.table[row*d+x]; !ln.isImpossible() {
					rows[v][x] += p * math.Exp(ln.minus(sum).float())
				}
			}
		}
	}
	return nil
}

// pairs are the joint probabilities of two variables by their places.
type pairs struct {
	lists         []*list
	distributions [][]float64
	jointOf       func(classes []int) []float64
	known         map[[2]place][]float64
	joint         map[[2]int][]float64
}

func newPairs(lists []*list, distributions [][]float64, jointOf func([]int) []float64) *pairs {
	return &pairs{lists, distributions, jointOf, map[[2]place][]float64{}, map[[2]int][]float64{}}
}

// pair returns P(x_i, x_j) of two different variables at some places, the second one's value fastest.
func (p *pairs) pair(a, b place) []float64 {
	if known, ok := p.known[[2]place{a, b}]; ok {
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
		joint, ok := p.joint[key]
		if !ok {
			joint = p.jointOf(key[:])
			p.joint[key] = joint
		}
		for index, w := range joint {
			if w > 0 {
				addProducts(out, first.ofGroup(index/second.size, a.group), second.ofGroup(index%second.size, b.group), w/(n*m))
			}
		}
	}
	p.known[[2]place{a, b}] = out
	return out
}

// addProducts adds w times the product of two counts.
func addProducts(to []float64, a, b []int32, w float64) {
	for x, c := range a {
		if c > 0 {
			for y, e := range b {
				to[x*len(b)+y] += w * float64(c) * float64(e)
			}
		}
	}
}

// joint returns the joint probabilities of variables that are classes of their own, the last one fastest.
func (c *counted) joint(variables []int) []float64 {
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
