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
	// negligible is −ln of the size of all nodes together that are left out, relative to the largest component.
	negligible = 37
	// maxNodes bounds the nodes that are looked at.
	maxNodes = 1 << 22
	// smallBoxWidth is the width of boxes that are not halved: all their nodes are taken, or none.
	smallBoxWidth = 3
	// coarseBoxes is the number of boxes at which findRegion stops halving; parts share them.
	coarseBoxes = 4096
)

// axis is the nodes of one statistic: y = step · m for m from first to last.
type axis struct {
	sqrtLambda  float64 // √|λ|
	step        float64
	first, last int
	isNegative  bool // λ < 0: the exponent i √|λ| y s is imaginary
	isHalved    bool // only nodes with m ≥ 0 are listed: those below 0 are their conjugates, and the weights are doubled for m > 0
}

// axes returns the nodes of the quadrature of each statistic s that suffice for all assignments: e^{½ λ s²} = Σ_m α_m e^{√λ y_m s} over the
// nodes y_m = step · m. If λ < 0 the exponent is imaginary, and the step is so small that the quadrature's periodic images of the Gaussian,
// at distances 2π/step, lie outside of the range of √|λ| s.
func (f *Fit) axes() []axis {
	values := len(f.Field)
	axes := make([]axis, len(f.Lambda))
	hasHalved := false // one imaginary axis can be halved: nodes come in pairs whose components are conjugates
	for k, lambda := range f.Lambda {
		// The range of s: each variable adds the smallest or the largest v of its values.
		lowest, highest, offset := 0.0, 0.0, k*values
		for _, d := range f.Domains {
			smallest, largest := math.Inf(1), math.Inf(-1)
			for _, v := range f.Vectors[offset : offset+d] {
				smallest, largest = min(smallest, v), max(largest, v)
			}
			lowest, highest, offset = lowest+smallest, highest+largest, offset+d
		}

		a := axis{sqrtLambda: math.Sqrt(math.Abs(lambda)), isNegative: lambda < 0}
		largestExponent := a.sqrtLambda * max(highest, -lowest)
		if a.isNegative {
			a.step = 2 * math.Pi / (largestExponent + reach)
			a.last = int(math.Ceil(reach / a.step))
			a.first, a.isHalved = -a.last, !hasHalved
			if a.isHalved { // nodes below 0 are the conjugates of those above
				a.first, hasHalved = 0, true
			}
		} else {
			a.step = spacing
			a.last = int(math.Ceil((largestExponent + reach) / a.step))
			a.first = -a.last
		}
		axes[k] = a
	}
	return axes
}

// lnWeight returns ln of a node's quadrature weight, step/√(2π) · e^{−y²/2} with y = step · m. The weight is doubled if the node stands for
// its conjugate, too.
func (a axis) lnWeight(m int) float64 {
	y := a.step * float64(m)
	ln := math.Log(a.step/math.Sqrt(2*math.Pi)) - y*y/2
	if a.isHalved && m > 0 {
		ln += math.Ln2
	}
	return ln
}

// node is a point of the quadrature: its number m on the axis of each statistic. Entries beyond the fit's statistics are 0.
type node [MaxStatistics]int32

// compare orders nodes by their first statistic, then by the second, and so on. It returns a number below 0 if n comes first.
func (n node) compare(m node) int {
	for k := range n {
		if n[k] != m[k] {
			return int(n[k] - m[k])
		}
	}
	return 0
}

// evaluator sums the components of a fit under weights of the variables' values.
type evaluator struct {
	fit          *Fit // with the statistics as variables, if StatisticsAreVariables
	program      *program
	axes         []axis
	firstValue   []int     // by variable: the index of its first value in lists by value
	field        []float64 // by value, nats: the fit's field plus ln of the weights
	isZero       bool      // some variable has no value with a weight above 0
	isComplex    bool      // some λ < 0
	sumRoundings float64   // bounds the roundings of the sum of a variable's weights
	factors      factorTables
}

// newEvaluator returns an evaluator of a fit under weights, which are by variable and value: it sums the fit's components, one for each
// node of the quadrature. Variables beyond the list of weights have weights of 1. The evaluator isZero if some variable has no value with a
// weight above 0. The error is over budget if the rest, the tables that the statistics do not give, has no elimination in small tables. It
// is a misfit if statistics have to be variables and cannot.
func newEvaluator(f *Fit, weights [][]float64) (*evaluator, error) {
	if f.StatisticsAreVariables {
		var err error
		if f, err = f.expandStatistics(); err != nil {
			return nil, err
		}
	}
	program, err := newProgram(f)
	if err != nil {
		return nil, fault.Wrap(fault.OverBudget, err)
	}

	// The fields with the logarithms of the weights added.
	e := &evaluator{fit: f, program: program, axes: f.axes(), firstValue: make([]int, len(f.Domains)), field: make([]float64, len(f.Field))}
	copy(e.field, f.Field)
	offset := 0
	for v, d := range f.Domains {
		e.firstValue[v] = offset
		isPossible := false
		for x := range d {
			if v < len(weights) {
				e.field[offset+x] += math.Log(weights[v][x])
			}
			isPossible = isPossible || !math.IsInf(e.field[offset+x], -1)
		}
		e.isZero = e.isZero || !isPossible
		offset += d
	}

	e.isComplex = f.hasNegativeLambda()
	e.sumRoundings = e.boundSumRoundings()
	e.factors = e.tabulateFactors()
	return e, nil
}

// boundSumRoundings bounds the roundings, in units of 2^-53, of the sum of one variable's weights. They are one for each addition, 8 for
// the exponential of the field, and 4 for the factor of each statistic. For a statistic with λ < 0 they are also 8 times the angle √|λ| y
// v, in radians. The nodes y of such a statistic end at reach.
func (e *evaluator) boundSumRoundings() float64 {
	largestDomain := 0
	for _, d := range e.fit.Domains {
		largestDomain = max(largestDomain, d)
	}
	withoutAngles := float64(8 + largestDomain + 4*len(e.axes))
	bound := withoutAngles
	values := len(e.fit.Field)
	for k, a := range e.axes {
		if !a.isNegative {
			continue
		}
		for _, v := range e.fit.Vectors[k*values:][:values] {
			bound = max(bound, withoutAngles+8*reach*a.sqrtLambda*math.Abs(v))
		}
	}
	return bound
}

// lnWeight returns ln of a node's quadrature weight |α|: the sum over its statistics.
func (e *evaluator) lnWeight(n node) (ln float64) {
	for k, a := range e.axes {
		ln += a.lnWeight(int(n[k]))
	}
	return ln
}

// box is a range of nodes for each statistic: from low to high, both included.
type box struct{ low, high node }

// region is a set of nodes, as disjoint boxes. All nodes outside of it together are below e^{−negligible} of the largest component.
type region struct {
	boxes          []box
	lnLargest      float64 // ln of the largest component seen, with its weight
	maxEvaluations float64 // that may be spent on all of the region
}

// search finds the nodes that matter by bounds of boxes. ln of a component, without its quadrature weight, is convex in the node, because
// it is ln of a sum of exponentials of linear functions. So no node of a box is above its largest corner times the largest weight in the
// box.
type search struct {
	*evaluator
	elimination    *elimination[plain]
	lnKnown        map[node]float64 // ln of the components evaluated so far, without their quadrature weights
	lnLargest      float64          // ln of the largest of these, with its quadrature weight
	threshold      float64          // nodes below e^{−threshold} of the largest do not matter
	maxEvaluations float64          // nodes that may be looked at
}

// newSearch begins a search for the nodes that matter: a node of the quadrature matters unless its component, the term of the sum that
// belongs to it, is below e^{−threshold} of the largest one. The search evaluates the components of at most maxEvaluations nodes.
func (e *evaluator) newSearch(maxEvaluations float64) *search {
	const hasShares = false // only totals are computed
	// Each of N nodes that is left out is below e^{−negligible}/N of the largest component, so that all together are below e^{−negligible}.
	threshold := negligible + math.Log(e.wholeBox().count(len(e.axes)))
	return &search{
		evaluator: e, elimination: newElimination[plain](e.program, e.fit, e.firstValue, hasShares),
		lnKnown: map[node]float64{}, lnLargest: math.Inf(-1),
		threshold: threshold, maxEvaluations: maxEvaluations,
	}
}

// wholeBox returns the box of all nodes of all axes.
func (e *evaluator) wholeBox() (all box) {
	for k, a := range e.axes {
		all.low[k], all.high[k] = int32(a.first), int32(a.last)
	}
	return all
}

// lnComponent returns ln of the size of a node's component, without its quadrature weight α. Statistics with λ < 0 only turn phases. They
// are left out, which bounds the size from above: their coordinates are set to 0 in n, which is a copy. Results are remembered in lnKnown.
// s.lnLargest is raised if the component times its quadrature weight is larger than all before.
func (s *search) lnComponent(n node) float64 {
	for k, a := range s.axes {
		if a.isNegative {
			n[k] = 0
		}
	}
	ln, ok := s.lnKnown[n]
	if !ok {
		ln = s.fillWeights(n, s.elimination) // of the scale of the weights
		z, exp := s.elimination.computeTotal()
		ln += math.Log(float64(z)) + float64(exp)*math.Ln2
		s.lnKnown[n] = ln
		s.lnLargest = max(s.lnLargest, ln+s.lnWeight(n))
	}
	return ln
}

// climb looks for a node, a point of the quadrature, whose component times its quadrature weight is large. lnComponent, which evaluates the
// nodes on the way, records the largest such product in lnLargest. climb starts at node 0 and moves along one statistic after the other as
// long as the product grows, first by 16 nodes, then by 8, 4, 2 and 1.
func (s *search) climb() {
	var current node
	lnHere := s.lnComponent(current) + s.lnWeight(current)
	for step := int32(16); step > 0; {
		hasMoved := false
		for k, a := range s.axes {
			for _, delta := range []int32{step, -step} {
				neighbour := current
				neighbour[k] += delta
				isOutside := int(neighbour[k]) < a.first || int(neighbour[k]) > a.last
				if a.isNegative || isOutside { // if λ < 0, lnComponent is the same for all nodes of the axis
					continue
				}
				if lnNeighbour := s.lnComponent(neighbour) + s.lnWeight(neighbour); lnNeighbour > lnHere {
					current, lnHere, hasMoved = neighbour, lnNeighbour, true
				}
			}
		}
		if !hasMoved {
			step /= 2
		}
	}
}

// narrow halves boxes of nodes, and drops boxes in which no node matters. It ends if there are at least enough boxes, or if all are small
// (smallBoxWidth). A node does not matter if its component times its quadrature weight is below e^{−threshold} of the largest such product.
// It returns the boxes that remain. The error is over budget above maxEvaluations. Cost: some evaluations per node of the remaining boxes.
func (s *search) narrow(ctx context.Context, boxes []box, enough int) ([]box, error) {
	var small []box
	smallNodes := 0.0 // of all small boxes
	for len(boxes) > 0 && len(small)+len(boxes) < enough {
		bounds := make([]float64, len(boxes))
		for k := range boxes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			bounds[k] = s.lnBound(boxes[k], s.lnComponent)
			if float64(len(s.lnKnown)) > s.maxEvaluations {
				return nil, errTooManyNodes(float64(len(s.lnKnown)))
			}
		}

		var halves []box
		for k, b := range boxes {
			if bounds[k] < s.lnLargest-s.threshold { // none of its nodes matters
				continue
			}
			if b.isSmall(len(s.axes)) {
				smallNodes += b.count(len(s.axes))
				if smallNodes > s.maxEvaluations {
					return nil, errTooManyNodes(smallNodes)
				}
				small = append(small, b)
				continue
			}
			halves = b.appendHalves(len(s.axes), halves)
		}
		boxes = halves
	}
	return append(small, boxes...), nil
}

// findRegion returns a region with all nodes that matter: those that may be above e^{−threshold} of the largest component. With one
// statistic it has a box for each node, otherwise up to some thousand boxes (coarseBoxes). The error is over budget if there are more than
// maxNodes nodes, or if they take more than work flops.
func (e *evaluator) findRegion(ctx context.Context, work float64) (*region, error) {
	const hasMarginals = false
	r := &region{maxEvaluations: min(maxNodes, work/e.nodeFlops(hasMarginals))}
	wholeBox := e.wholeBox()
	if len(e.axes) <= 1 {
		if count := wholeBox.count(len(e.axes)); count > r.maxEvaluations {
			return nil, errTooManyNodes(count)
		}
		for _, n := range wholeBox.appendNodes(len(e.axes), nil) {
			r.boxes = append(r.boxes, box{n, n})
		}
		return r, nil
	}
	s := e.newSearch(r.maxEvaluations)
	if math.IsInf(s.lnComponent(node{}), -1) { // no assignment is possible, whatever the node
		return r, nil
	}
	s.climb()
	var err error
	r.boxes, err = s.narrow(ctx, []box{wholeBox}, coarseBoxes)
	r.lnLargest = s.lnLargest
	return r, err
}

// smallBoxes divides a share of a region's boxes into small boxes of nodes that matter. The share is from ≤ box < to, in units of
// 1/WholeShare of the boxes, so that equal shares take about the same time. The error is over budget above four times the share's part of
// region.maxEvaluations.
func (e *evaluator) smallBoxes(ctx context.Context, region *region, from, to int64) ([]box, error) {
	count := int64(len(region.boxes))
	boxes := region.boxes[count*from/WholeShare : count*to/WholeShare]
	if len(e.axes) <= 1 {
		return boxes, nil
	}
	// Four times its part (chosen): shares have the same number of boxes, but not of nodes.
	s := e.newSearch(min(region.maxEvaluations, 4*region.maxEvaluations*float64(to-from)/float64(WholeShare)))
	s.lnLargest = region.lnLargest           // all shares drop the same nodes
	return s.narrow(ctx, boxes, math.MaxInt) // until all boxes are small
}

// listNodes lists the nodes that matter of a share of a region, sorted. The share is from ≤ box < to, in units of 1/WholeShare of the
// region's boxes. The error is over budget if finding them takes more than four times the share's part of region.maxEvaluations.
func (e *evaluator) listNodes(ctx context.Context, region *region, from, to int64) (nodes []node, err error) {
	boxes, err := e.smallBoxes(ctx, region, from, to)
	if err != nil {
		return nil, err
	}
	for _, b := range boxes {
		nodes = b.appendNodes(len(e.axes), nodes)
	}
	slices.SortFunc(nodes, node.compare) // consecutive nodes share factors (fillWeights)
	return nodes, nil
}

// listAllNodes lists all nodes that matter. The error is over budget if there are more than maxNodes, or if they take more than work flops.
func (e *evaluator) listAllNodes(ctx context.Context, work float64) ([]node, error) {
	region, err := e.findRegion(ctx, work)
	if err != nil {
		return nil, err
	}
	return e.listNodes(ctx, region, 0, WholeShare)
}

// countNodes returns the number of nodes that matter. The error is over budget if there are too many of them, or if finding them takes more
// than work flops.
func (e *evaluator) countNodes(ctx context.Context, work float64) (count float64, err error) {
	region, err := e.findRegion(ctx, work)
	if err != nil {
		return 0, err
	}
	boxes, err := e.smallBoxes(ctx, region, 0, WholeShare)
	for _, b := range boxes {
		count += b.count(len(e.axes))
	}
	return count, err
}

// errTooManyNodes returns the error over budget that says that more than n nodes matter.
func errTooManyNodes(n float64) error {
	return fault.New(fault.OverBudget, "structured: more than %.3g nodes of the quadrature matter", n)
}

// lnBound returns ln of an upper bound of all weighted components in a box: the component of its largest corner times the quadrature weight
// of its node nearest to 0. That is a bound because ln of a component is convex in the node, and because weights fall with the distance
// from 0. lnComponent returns ln of a node's component without its weight. Corners with the same component are evaluated once.
func (e *evaluator) lnBound(b box, lnComponent func(node) float64) float64 {
	axes := len(e.axes)
	bound := math.Inf(-1)
	for corner := range 1 << axes { // bit k: the corner is at the high end of statistic k
		if e.isRepeatedCorner(b, corner) {
			continue
		}
		n := b.low
		for k := range axes {
			if corner>>k&1 == 1 {
				n[k] = b.high[k]
			}
		}
		bound = max(bound, lnComponent(n))
	}

	for k, a := range e.axes {
		nearest := 0 // number of the box's node nearest to 0 on axis k
		if b.low[k] > 0 {
			nearest = int(b.low[k])
		} else if b.high[k] < 0 {
			nearest = int(b.high[k])
		}
		bound += a.lnWeight(nearest)
		if a.isHalved && nearest == 0 { // lnWeight doubles the nodes above 0, which stand for those below, and not node 0
			bound += math.Ln2
		}
	}
	return bound
}

// isRepeatedCorner reports whether a corner of a box has the same component as another corner with fewer high ends. Bit k of corner is 1 if
// the corner is at the high end of axis k. The component is the same along an axis on which the box has one node, or whose λ is below 0.
func (e *evaluator) isRepeatedCorner(b box, corner int) bool {
	for k, a := range e.axes {
		if corner>>k&1 == 1 && (b.low[k] == b.high[k] || a.isNegative) {
			return true
		}
	}
	return false
}

// count returns the number of nodes of a box along its first axes.
func (b box) count(axes int) float64 {
	count := 1.0
	for axis := range axes {
		count *= float64(b.high[axis] - b.low[axis] + 1)
	}
	return count
}

// isSmall reports whether a box is at most smallBoxWidth nodes wide along each of the first axes, as many as axes says.
func (b box) isSmall(axes int) bool {
	for axis := range axes {
		if b.high[axis]-b.low[axis] >= smallBoxWidth {
			return false
		}
	}
	return true
}

// appendHalves halves a box of nodes. It halves it along each of the first axes, as many as axes says, along which the box has more than
// smallBoxWidth nodes. It appends the parts, up to 2^axes, to a list.
func (b box) appendHalves(axes int, list []box) []box {
	parts := []box{b}
	for axis := range axes {
		if b.high[axis]-b.low[axis] < smallBoxWidth {
			continue
		}
		middle := (b.low[axis] + b.high[axis]) >> 1
		for p := range len(parts) {
			upper := parts[p]
			upper.low[axis] = middle + 1
			parts[p].high[axis] = middle
			parts = append(parts, upper)
		}
	}
	return append(list, parts...)
}

// appendNodes appends all nodes of a box to nodes. Only the first axes coordinates of a node are used. The last of them changes fastest.
func (b box) appendNodes(axes int, nodes []node) []node {
	n := b.low
	for {
		nodes = append(nodes, n)

		// Count up: advance the last axis that is not at its end, and reset those after it.
		axis := axes - 1
		for ; axis >= 0; axis-- {
			if n[axis]++; n[axis] <= b.high[axis] {
				break
			}
			n[axis] = b.low[axis]
		}
		if axis < 0 {
			return nodes
		}
	}
}
