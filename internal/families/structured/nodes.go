package structured

// The nodes of the quadrature, and those that matter.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
)

const (
	// reach is the range of y beyond the largest exponent, where e^{−y²/2} is below 2e-17.
	reach = 8.8
	// spacing is h for λ > 0: the quadrature's relative error is below 6e-17.
	spacing = 0.72
	// negligible is the relative size, −ln, of all nodes together that are left out.
	negligible = 37
	// mostNodes bounds the nodes that are looked at.
	mostNodes = 1 << 22
)

// axis are the nodes of one statistic: y = step · m for m from first to last.
type axis struct {
	root        float64 // √|λ|
	step        float64
	first, last int
	negative    bool // λ < 0: the exponent is imaginary
	half        bool // nodes below 0 are the conjugates of those above
}

// axes returns the nodes of a fit's statistics over all assignments. The step for λ < 0 keeps the images of the Gaussian beyond the
// range of s.
func (f *Fit) axes() []axis {
	values := len(f.Field)
	out := make([]axis, len(f.Lambda))
	half := false
	for k, lambda := range f.Lambda {
		low, high, at := 0.0, 0.0, k*values
		for _, d := range f.Domains {
			smallest, largest := math.Inf(1), math.Inf(-1)
			for _, v := range f.Vectors[at : at+d] {
				smallest, largest = min(smallest, v), max(largest, v)
			}
			low, high, at = low+smallest, high+largest, at+d
		}
		a := axis{root: math.Sqrt(math.Abs(lambda)), negative: lambda < 0}
		s := a.root * max(high, -low)
		if a.negative {
			a.step = 2 * math.Pi / (s + reach)
			a.last = int(math.Ceil(reach / a.step))
			a.first, a.half = -a.last, !half
			if a.half {
				a.first, half = 0, true
			}
		} else {
			a.step = spacing
			a.last = int(math.Ceil((s + reach) / a.step))
			a.first = -a.last
		}
		out[k] = a
	}
	return out
}

// lnWeight is ln |α| of a node.
func (a axis) lnWeight(m int) float64 {
	y := a.step * float64(m)
	ln := math.Log(a.step/math.Sqrt(2*math.Pi)) - y*y/2
	if a.half && m > 0 {
		ln += math.Ln2
	}
	return ln
}

// node is a point of the quadrature: m by statistic.
type node [MostStatistics]int32

// evaluator is a fit under weights of the variables' values.
type evaluator struct {
	fit     *Fit
	program *program
	axes    []axis
	at      []int
	field   []float64 // by value, nats: the fit's and ln of the weights
	zero    bool      // some variable has no value left
	complex bool      // some λ < 0
}

// newEvaluator returns a fit under weights of the variables, by variable; nil: all ones.
func newEvaluator(f *Fit, weights [][]float64) (*evaluator, error) {
	p, err := newProgram(f)
	if err != nil {
		return nil, fault.Wrap(fault.OverBudget, err)
	}
	e := &evaluator{fit: f, program: p, axes: f.axes(), at: make([]int, len(f.Domains)), field: make([]float64, len(f.Field))}
	copy(e.field, f.Field)
	at := 0
	for v, d := range f.Domains {
		e.at[v] = at
		possible := false
		for x := range d {
			if weights != nil {
				e.field[at+x] += math.Log(weights[v][x])
			}
			possible = possible || !math.IsInf(e.field[at+x], -1)
		}
		e.zero = e.zero || !possible
		at += d
	}
	for _, a := range e.axes {
		e.complex = e.complex || a.negative
	}
	return e, nil
}

// real fills weights of values for the real part of a node, the largest of each variable 1, and returns ln of what they are divided by.
func (e *evaluator) real(at node, g []plain) (ln float64) {
	values := len(e.field)
	var t [MostStatistics]float64
	for k, a := range e.axes {
		if !a.negative {
			t[k] = a.root * a.step * float64(at[k])
		}
	}
	args := g
	for x, f := range e.field {
		for k := range e.axes {
			if t[k] != 0 {
				f += t[k] * e.fit.Vectors[k*values+x]
			}
		}
		args[x] = plain(f)
	}
	for v, d := range e.fit.Domains {
		own := args[e.at[v]:][:d]
		most := own[0]
		for _, f := range own[1:] {
			most = max(most, f)
		}
		ln += float64(most)
		for x, f := range own {
			own[x] = plain(math.Exp(float64(f - most)))
		}
	}
	return ln
}

// turned are a node's weights with the phases of the statistics with λ < 0.
func (e *evaluator) turned(at node, size []plain, g []phase) {
	values := len(e.field)
	for x, s := range size {
		angle := 0.0
		for k, a := range e.axes {
			if a.negative {
				angle += a.root * a.step * float64(at[k]) * e.fit.Vectors[k*values+x]
			}
		}
		sin, cos := math.Sincos(angle)
		g[x] = phase(complex(float64(s)*cos, float64(s)*sin))
	}
}

// lnWeight is ln |α| of a node.
func (e *evaluator) lnWeight(at node) (ln float64) {
	for k, a := range e.axes {
		ln += a.lnWeight(int(at[k]))
	}
	return ln
}

// box is a range of nodes, both ends included.
type box struct{ low, high node }

// nodes lists those that matter: all others together are below e^{−negligible} of the largest one, by bounds. ln of a component is
// convex in the exponents, because it is ln of a sum of exponentials; so a box of nodes is bounded by its corners, times the largest
// weight in it. Cost some evaluations per node listed. Over budget above so many flops, or above
// mostNodes.
func (e *evaluator) nodes(ctx context.Context, work float64) ([]node, error) {
	var whole box
	count := 1.0
	for k, a := range e.axes {
		whole.low[k], whole.high[k] = int32(a.first), int32(a.last)
		count *= float64(a.last - a.first + 1)
	}
	most := min(mostNodes, work/e.flops(false))
	if len(e.axes) == 1 {
		if count > most {
			return nil, errNodes(count)
		}
		return whole.list(len(e.axes), nil), nil
	}
	s := newElimination[plain](e.program, e.fit, e.at, false)
	known := map[node]float64{}
	best := math.Inf(-1)
	threshold := negligible + math.Log(count)
	value := func(at node) float64 { // without its weight
		for k, a := range e.axes {
			if a.negative {
				at[k] = 0
			}
		}
		ln, ok := known[at]
		if !ok {
			ln = e.real(at, s.g)
			z, exp := s.total()
			ln += math.Log(float64(z)) + float64(exp)*math.Ln2
			known[at] = ln
			best = max(best, ln+e.lnWeight(at))
		}
		return ln
	}
	if math.IsInf(value(node{}), -1) { // no assignment is possible, whatever the node
		return nil, nil
	}
	live := []box{whole}
	var listed []node
	for len(live) > 0 {
		bounds := make([]float64, len(live))
		for b := range live {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			bounds[b] = e.bound(live[b], value)
			if float64(len(known)) > most {
				return nil, errNodes(float64(len(known)))
			}
		}
		var next []box
		for b, own := range live {
			if bounds[b] < best-threshold {
				continue
			}
			if own.small(len(e.axes)) {
				if listed = own.list(len(e.axes), listed); float64(len(listed)) > most {
					return nil, errNodes(float64(len(listed)))
				}
				continue
			}
			next = own.halves(len(e.axes), next)
		}
		live = next
	}
	return listed, nil
}

func errNodes(n float64) error {
	return fault.New(fault.OverBudget, "structured: more than %.3g nodes of the quadrature matter", n)
}

// bound is ln of no less than any node of a box.
func (e *evaluator) bound(b box, value func(node) float64) float64 {
	k := len(e.axes)
	most := math.Inf(-1)
	for corner := range 1 << k {
		at := b.low
		skip := false
		for i := range k {
			if corner>>i&1 == 1 {
				if skip = skip || b.low[i] == b.high[i] || e.axes[i].negative; skip {
					break
				}
				at[i] = b.high[i]
			}
		}
		if !skip {
			most = max(most, value(at))
		}
	}
	for i, a := range e.axes {
		nearest := 0
		if b.low[i] > 0 {
			nearest = int(b.low[i])
		} else if b.high[i] < 0 {
			nearest = int(b.high[i])
		}
		most += a.lnWeight(nearest)
		if a.half && nearest == 0 {
			most += math.Ln2
		}
	}
	return most
}

// small reports whether a box is at most two nodes wide.
func (b box) small(k int) bool {
	for i := range k {
		if b.high[i]-b.low[i] > 1 {
			return false
		}
	}
	return true
}

// halves appends the halves of a box along each side of more than two nodes.
func (b box) halves(k int, to []box) []box {
	parts := []box{b}
	for i := range k {
		if b.high[i]-b.low[i] <= 1 {
			continue
		}
		middle := (b.low[i] + b.high[i]) >> 1
		for p := range len(parts) {
			upper := parts[p]
			upper.low[i] = middle + 1
			parts[p].high[i] = middle
			parts = append(parts, upper)
		}
	}
	return append(to, parts...)
}

// list appends the nodes of a box.
func (b box) list(k int, to []node) []node {
	at := b.low
	for {
		to = append(to, at)
		i := k - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] <= b.high[i] {
				break
			}
			at[i] = b.low[i]
		}
		if i < 0 {
			return to
		}
	}
}
