package counts

// The most probable assignment: the largest weights of every piece with its leg counted and without, and the number of
// counting legs.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// optionalPiece is a piece that can have count 0 and count 1.
type optionalPiece struct {
	piece           int32
	group           int32
	firstDifference int  // the first variable at which its two assignments differ
	smallerCount    int8 // the count, 0 or 1, whose assignment has the smaller value there
}

// group is the optional pieces of kinds with the same ratio of largest weights, that with count 1 over that with count 0. Which of them
// count makes no difference to the weight.
type group struct {
	from, to              int // number of pieces in all groups before it, and that with its own
	counting, notCounting int // number of its pieces that are decided so far
}

// bestSearch chooses the pieces that count in the most probable assignment.
type bestSearch struct {
	*Form
	pace           *pace.Pace
	tolerance      float64         // relative difference up to which weights are equal
	peaks          []pieceMaximum  // by kind
	groupOf        []int32         // by kind; −1 for none
	groups         []group         // the largest ratio first
	alwaysCounting int             // pieces that count in any case
	optional       int             // pieces that may count
	weights        []scaled.Number // by number of counting optional pieces: the largest weight of an assignment
	largest        scaled.Number   // of weights
}

// MostProbable returns the most probable assignment, or nil if Z is 0. Its weight is without the network's scale.
//
// The network is a symmetric core, whose entry S_c depends on the number c of its legs that count, and pieces, connected parts that have at
// most one such leg each. If c pieces count, those do that have the largest ratios max_{x counted} w(x) / max_{x not counted} w(x):
// exchanging two pieces shows it. So one sort and one pass over c find max_c S_c Π_t w_t. Of assignments of the same weight, up to the
// rounding of their factors, it is the smallest in the order of the variables. Within a piece of many links it is the first that is met.
//
// With several count variables a sweep over the variables finds it. Cost: the elimination of every kind of piece, and O(n log n) for n
// pieces. Errors: fault.Unsupported if CanFind returns false; the context's.
func (f *Form) MostProbable(ctx context.Context) (*btn.Found, error) {
	if err := f.checkFinds(btn.AskMPE); err != nil {
		return nil, err
	}
	if f.countVariables > 1 {
		return f.sweepBest(ctx)
	}

	// The largest weights of each kind, and of all assignments with each number of counting pieces.
	b := &bestSearch{Form: f, pace: pace.New(ctx), tolerance: f.tieTolerance()}
	b.peaks = make([]pieceMaximum, len(f.kinds))
	for k := range b.peaks {
		if b.pace.Over(16) { // about so many operations
			return nil, b.pace.Err()
		}
		var err error
		if b.peaks[k], err = f.maximumOf(ctx, &f.kinds[k], b.tolerance); err != nil {
			return nil, err
		}
	}
	if !b.groupByRatio() {
		return nil, b.pace.Err()
	}
	tied := b.bestCounts()
	if err := b.pace.Err(); err != nil || len(tied) == 0 || f.scale.IsZero() {
		return nil, err
	}

	return b.assignment(tied)
}

// assignment returns the most probable assignment, given the numbers of counting optional pieces that the most probable assignments have.
func (b *bestSearch) assignment(tied []int) (*btn.Found, error) {
	// The assignment is not unique if several numbers of counting pieces are best, or if a part of a group counts: groups are pieces of
	// equal ratios, so another part would do.
	best := &btn.Found{Weight: b.largest.Mul(b.scale), Unique: len(tied) == 1, Close: b.tolerance}
	for _, g := range b.groups {
		if countsInPart := tied[0] > g.from && tied[0] < g.to; countsInPart {
			best.Unique = false
		}
	}
	counts, err := b.chooseCounting(tied)
	if err != nil {
		return nil, err
	}

	best.Values = make([]int, len(b.net.Variables))
	for t, p := range b.pieces {
		peak := &b.peaks[b.kindOf[t]]
		count := counts[t]
		best.Unique = best.Unique && peak.isUnique[count]
		for i, link := range p.links {
			best.Values[b.variableOf[link]] = peak.terms[count][i]
		}
	}
	return best, nil
}

// tieTolerance returns the relative difference up to which two weights of assignments are equal: a bound of their roundings.
func (f *Form) tieTolerance() float64 {
	return 2 * float64(len(f.net.Cores)+len(f.net.Variables)+2) * 0x1p-53
}

// groupByRatio sorts the kinds, classes of equal pieces, whose pieces may count or not by their ratio: the largest weight of a piece with
// count 1 over that with count 0. The largest ratio comes first, and kinds with equal ratios make a group. It also fills weights:
// weights[c] is the weight, without S, of the assignment in which the c pieces with the largest ratios count. It returns false if a kind
// has no weight at all, so that Z is 0, or if the context ends.
func (b *bestSearch) groupByRatio() bool {
	ratios, ok := b.rateKinds()
	if !ok {
		return false
	}
	b.groupOf = slices.Repeat([]int32{-1}, len(b.kinds))
	b.weights = make([]scaled.Number, 1, b.optional+1)
	b.weights[0] = b.weightWithoutOptional()

	// Each further counting piece multiplies the weight by its ratio.
	groupRatio := scaled.Number{} // of the first kind of the present group, so no later ratio is above it
	for _, x := range ratios {
		pieces := len(b.weights) - 1 // in all kinds so far
		if len(b.groups) == 0 || !isNear(x.ratio, groupRatio, b.tolerance) {
			b.groups = append(b.groups, group{from: pieces, to: pieces})
			groupRatio = x.ratio
		}
		g := len(b.groups) - 1
		b.groupOf[x.kind] = int32(g)
		b.groups[g].to += b.kinds[x.kind].count
		for range b.kinds[x.kind].count {
			b.weights = append(b.weights, b.weights[len(b.weights)-1].Mul(x.ratio))
		}
	}
	return b.pace.Err() == nil
}

// kindRatio is a kind whose pieces may count or not, with its largest weight with count 1 over that with count 0.
type kindRatio struct {
	kind  int32
	ratio scaled.Number
}

// rateKinds returns the kinds whose pieces may count or not, the largest ratio first: the largest weight of a piece with count 1 over that
// with count 0. A kind is a class of equal pieces. It adds the numbers of these pieces to optional, and those of pieces that must count to
// alwaysCounting. ok is false if a kind has no weight at all.
func (b *bestSearch) rateKinds() (ratios []kindRatio, ok bool) {
	for k, p := range b.peaks { // p has the largest weights of a piece of kind k with count 0 and 1
		switch {
		case p.weight[0].IsZero() && p.weight[1].IsZero():
			return nil, false
		case p.weight[0].IsZero():
			b.alwaysCounting += b.kinds[k].count
		case !p.weight[1].IsZero(): // it may count or not
			ratios = append(ratios, kindRatio{int32(k), p.weight[1].Div(p.weight[0])})
			b.optional += b.kinds[k].count
		}
	}
	slices.SortStableFunc(ratios, func(x, y kindRatio) int { return y.ratio.Cmp(x.ratio) })
	return ratios, true
}

// weightWithoutOptional returns the largest weight of an assignment in which no optional piece counts: the product of the largest weights
// of all pieces, without the entry of the symmetric core, S. Optional pieces have a weight both if they count and if they do not.
func (b *bestSearch) weightWithoutOptional() scaled.Number {
	product := scaled.One
	for k, p := range b.peaks {
		weight := p.weight[0]
		if weight.IsZero() { // the pieces must count
			weight = p.weight[1]
		}
		for range b.kinds[k].count {
			product = product.Mul(weight)
		}
	}
	return product
}

// isNear reports whether x ≤ y is smaller than y by at most the relative difference tolerance.
func isNear(x, y scaled.Number, tolerance float64) bool {
	return y.Sub(x).Cmp(y.Mul(scaled.FromFloat(tolerance))) <= 0
}

// bestCounts returns the numbers of counting optional pieces that the most probable assignments have, ascending. b.weights[c] is the
// largest weight of an assignment in which c of the optional pieces count. bestCounts multiplies it by S, the symmetric core's polynomial,
// at the total count, which includes the pieces that count in any case, and sets b.largest. It returns nil if all weights are 0, or if the
// context ended.
func (b *bestSearch) bestCounts() (tied []int) {
	space := b.slots[0].poly // S of the one core in count space
	for c := range b.weights {
		if b.pace.Over(1) { // an operation; true if the context has ended
			return nil
		}
		if c+b.alwaysCounting >= space.Size() {
			b.weights[c] = scaled.Number{}
			continue
		}
		b.weights[c] = b.weights[c].Mul(space.Coef.At(c + b.alwaysCounting))
		if c == 0 || b.weights[c].Cmp(b.largest) > 0 {
			b.largest = b.weights[c]
		}
	}
	if b.largest.IsZero() {
		return nil
	}
	for c, w := range b.weights {
		if isNear(w, b.largest, b.tolerance) {
			tied = append(tied, c)
		}
	}
	return tied
}

// chooseCounting returns the count of each piece, 0 or 1. Optional pieces can have either; the ratio of a piece is its largest weight with
// count 1 over that with count 0, and a group has equal ratios. The number of optional pieces that count is one of tied, and those with the
// largest ratios count. Of all such choices it takes the one whose assignment is the smallest in the order of the variables.
//
// It decides the pieces in the sequence of the first variables at which their two assignments differ. A piece gets the count with the
// smaller value there if some choice of the undecided pieces is left.
func (b *bestSearch) chooseCounting(tied []int) ([]int8, error) {
	counts, optional, err := b.listOptional()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(optional, func(x, y optionalPiece) int { return x.firstDifference - y.firstDifference })

	// The number of counting pieces is an entry of tied from low to high. If one more piece of a group counts, so do all pieces of earlier
	// groups, with larger ratios: the number is at least group.from + group.counting + 1. If one more does not, no piece of a later group
	// counts: the number is at most group.to − group.notCounting − 1.
	low, high := 0, b.optional
	for _, item := range optional {
		if b.pace.Over(8) { // about so many operations
			return nil, b.pace.Err()
		}
		group := &b.groups[item.group]
		lowIfCounting, highIfNot := max(low, group.from+group.counting+1), min(high, group.to-group.notCounting-1)
		shallCount := item.smallerCount == 1 && hasEntryBetween(tied, lowIfCounting, high) // it is smaller and possible
		mustCount := !hasEntryBetween(tied, low, highIfNot)                                // not counting leaves no choice
		if shallCount || mustCount {
			counts[item.piece] = 1
			group.counting++
			low = lowIfCounting
		} else {
			group.notCounting++
			high = highIfNot
		}
	}
	return counts, nil
}

// listOptional returns the optional pieces, in the sequence of the pieces, and the counts of all others: 1 for a piece that has no weight
// with count 0, and 0 otherwise. The counts of optional pieces are 0. The error is the context's.
func (b *bestSearch) listOptional() (counts []int8, optional []optionalPiece, err error) {
	counts = make([]int8, len(b.pieces))
	optional = make([]optionalPiece, 0, b.optional)
	for t, p := range b.pieces {
		if b.pace.Over(int64(len(p.links))) {
			return nil, nil, b.pace.Err()
		}
		k := b.kindOf[t]
		if isOptional := b.groupOf[k] >= 0; isOptional {
			optional = append(optional, b.optionalPiece(t))
		} else if b.peaks[k].weight[0].IsZero() {
			counts[t] = 1
		}
	}
	return counts, optional, nil
}

// optionalPiece compares the best assignments of a piece with count 0 and with count 1. The result has the first variable at which they
// differ, and the count of the one with the smaller value there. The piece is optional: both counts are possible.
func (b *bestSearch) optionalPiece(t int) optionalPiece {
	peak := &b.peaks[b.kindOf[t]]
	item := optionalPiece{piece: int32(t), group: b.groupOf[b.kindOf[t]], firstDifference: -1} // −1: they do not differ so far
	for i, link := range b.pieces[t].links {
		v := b.variableOf[link]
		if peak.terms[0][i] != peak.terms[1][i] && (item.firstDifference < 0 || v < item.firstDifference) {
			item.firstDifference, item.smallerCount = v, 0
			if peak.terms[1][i] < peak.terms[0][i] {
				item.smallerCount = 1
			}
		}
	}
	return item
}

// hasEntryBetween reports whether an ascending list has an entry x with low ≤ x ≤ high.
func hasEntryBetween(list []int, low, high int) bool {
	i, _ := slices.BinarySearch(list, low)
	return i < len(list) && list[i] <= high
}
