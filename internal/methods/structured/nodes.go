package structured

// The nodes of the quadrature, and those that matter.

import (
	"context"
	"math"
	"slices"

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
	// boxWide is the width of boxes of nodes that are taken or left out as a whole.
	boxWide = 3
	// coarseBoxes is the number of boxes that parts share.
	coarseBoxes = 4096
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

func (a node) compare(b node) int {
	for k := range a {
		if a[k] != b[k] {
			return int(a[k] - b[k])
		}
	}
	return 0
}

// evaluator is a fit under weights of the variables' values.
type evaluator struct {
	fit     *Fit
	program *program
	axes    []axis
	at      []int
	field   []float64 // by value, nats: the fit's and ln of the weights
	zero    bool      // some variable has no value left
	complex bool      // some λ < 0
	own     float64   // bound of the roundings of the sum of a variable's weights
	tables  tables
}

// newEvaluator returns a fit under weights of the variables, by variable; nil: all ones.
func newEvaluator(f *Fit, weights [][]float64) (*evaluator, error) {
	if f.Summed {
		var err error
		if f, err = f.summed(); err != nil {
			return nil, err
		}
	}
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
			if v < len(weights) {
				e.field[at+x] += math.Log(weights[v][x])
			}
			possible = possible || !math.IsInf(e.field[at+x], -1)
		}
		e.zero = e.zero || !possible
		at += d
	}
	widest := 0
	for _, d := range f.Domains {
		widest = max(widest, d)
	}
	e.own = float64(8 + widest + 4*len(e.axes))
	for k, a := range e.axes {
		if e.complex = e.complex || a.negative; !a.negative {
			continue
		}
		for _, y := range f.Vectors[k*len(f.Field):][:len(f.Field)] {
			e.own = max(e.own, float64(8+widest+4*len(e.axes))+8*reach*a.root*math.Abs(y)) // of an angle
		}
	}
	e.tables = e.tabulate()
	return e, nil
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

// region is where nodes matter: all others together are below e^{−negligible} of the largest one.
type region struct {
	boxes []box
	best  float64 // ln of the largest node seen
	most  float64 // evaluations that all of it may take
}

// search bounds boxes of nodes. ln of a component is convex in the exponents, because it is ln of a sum of exponentials; so a box of
// nodes is bounded by its corners, times the largest weight in it.
type search struct {
	*evaluator
	run       *elimination[plain]
	known     map[node]float64 // ln without the weight
	best      float64
	threshold float64
	most      float64 // nodes that may be looked at
}

// search begins a search in the region of all nodes that takes so many evaluations at most.
func (e *evaluator) search(most float64) *search {
	return &search{
		evaluator: e, run: newElimination[plain](e.program, e.fit, e.at, false), known: map[node]float64{}, best: math.Inf(-1),
		threshold: negligible + math.Log(e.whole().size(len(e.axes))), most: most,
	}
}

// whole is the box of all nodes.
func (e *evaluator) whole() (whole box) {
	for k, a := range e.axes {
		whole.low[k], whole.high[k] = int32(a.first), int32(a.last)
	}
	return whole
}

// value is ln of a node's component without its weight.
func (s *search) value(at node) float64 {
	for k, a := range s.axes {
		if a.negative {
			at[k] = 0
		}
	}
	ln, ok := s.known[at]
	if !ok {
		ln = s.real(at, s.run)
		z, exp := s.run.total()
		ln += math.Log(float64(z)) + float64(exp)*math.Ln2
		s.known[at] = ln
		s.best = max(s.best, ln+s.lnWeight(at))
	}
	return ln
}

// climb looks for a large node, from 0 by steps along one statistic after the other.
func (s *search) climb() {
	var at node
	own := s.value(at) + s.lnWeight(at)
	for step := int32(16); step > 0; {
		better := false
		for k, a := range s.axes {
			for _, by := range []int32{step, -step} {
				to := at
				if to[k] += by; a.negative || int(to[k]) < a.first || int(to[k]) > a.last {
					continue
				}
				if ln := s.value(to) + s.lnWeight(to); ln > own {
					at, own, better = to, ln, true
				}
			}
		}
		if !better {
			step /= 2
		}
	}
}

// narrow halves boxes and leaves those out that do not matter, until there are so many or all are small. Cost some evaluations per node
// of what is left.
func (s *search) narrow(ctx context.Context, live []box, until int) ([]box, error) {
	var small []box
	size := 0.0
	for len(live) > 0 && len(small)+len(live) < until {
		bounds := make([]float64, len(live))
		for b := range live {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			bounds[b] = s.bound(live[b], s.value)
			if float64(len(s.known)) > s.most {
				return nil, errNodes(float64(len(s.known)))
			}
		}
		var next []box
		for b, own := range live {
			if bounds[b] < s.best-s.threshold {
				continue
			}
			if own.small(len(s.axes)) {
				if size += own.size(len(s.axes)); size > s.most {
					return nil, errNodes(size)
				}
				small = append(small, own)
				continue
			}
			next = own.halves(len(s.axes), next)
		}
		live = next
	}
	return append(small, live...), nil
}

// region returns the region of the nodes that matter as some hundred boxes, or single nodes of one statistic. Over budget above so many
// flops for all of its nodes, or above mostNodes.
func (e *evaluator) region(ctx context.Context, work float64) (*region, error) {
	r := &region{most: min(mostNodes, work/e.flops(false))}
	whole := e.whole()
	if len(e.axes) <= 1 {
		if count := whole.size(len(e.axes)); count > r.most {
			return nil, errNodes(count)
		}
		for _, at := range whole.list(len(e.axes), nil) {
			r.boxes = append(r.boxes, box{at, at})
		}
		return r, nil
	}
	s := e.search(r.most)
	if math.IsInf(s.value(node{}), -1) { // no assignment is possible, whatever the node
		return r, nil
	}
	s.climb()
	var err error
	r.boxes, err = s.narrow(ctx, []box{whole}, coarseBoxes)
	r.best = s.best
	return r, err
}

// boxes divides a share of a region into small boxes of nodes that matter. Shares of one size take about one time. Over budget above four
// times their share of the region's evaluations.
func (e *evaluator) boxes(ctx context.Context, r *region, from, to int64) ([]box, error) {
	n := int64(len(r.boxes))
	boxes := r.boxes[n*from/WholeShare : n*to/WholeShare]
	if len(e.axes) <= 1 {
		return boxes, nil
	}
	s := e.search(min(r.most, 4*r.most*float64(to-from)/float64(WholeShare)))
	s.best = r.best
	return s.narrow(ctx, boxes, math.MaxInt)
}

// nodes lists the nodes of a share of a region that matter. Errors: as boxes.
func (e *evaluator) nodes(ctx context.Context, r *region, from, to int64) (listed []node, err error) {
	boxes, err := e.boxes(ctx, r, from, to)
	if err != nil {
		return nil, err
	}
	for _, b := range boxes {
		listed = b.list(len(e.axes), listed)
	}
	slices.SortFunc(listed, node.compare) // neighbours share factors: see real
	return listed, nil
}

// allNodes lists all nodes that matter. Over budget above so many flops, or above mostNodes.
func (e *evaluator) allNodes(ctx context.Context, work float64) ([]node, error) {
	r, err := e.region(ctx, work)
	if err != nil {
		return nil, err
	}
	return e.nodes(ctx, r, 0, WholeShare)
}

// count returns the number of nodes that matter. Errors: as allNodes.
func (e *evaluator) count(ctx context.Context, work float64) (nodes float64, err error) {
	r, err := e.region(ctx, work)
	if err != nil {
		return 0, err
	}
	boxes, err := e.boxes(ctx, r, 0, WholeShare)
	for _, b := range boxes {
		nodes += b.size(len(e.axes))
	}
	return nodes, err
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

// size is the number of nodes of a box.
func (b box) size(k int) float64 {
	n := 1.0
	for i := range k {
		n *= float64(b.high[i] - b.low[i] + 1)
	}
	return n
}

// small reports whether a box is at most boxWide nodes wide.
func (b box) small(k int) bool {
	for i := range k {
		if b.high[i]-b.low[i] >= boxWide {
			return false
		}
	}
	return true
}

// halves appends the halves of a box along each side of more than boxWide nodes.
func (b box) halves(k int, to []box) []box {
	parts := []box{b}
	for i := range k {
		if b.high[i]-b.low[i] < boxWide {
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
