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

// optionalPiece is a piece that may count or not.
type optionalPiece struct {
	piece           int32
	group           int32
	firstDifference int  // the first variable at which its two assignments differ
	smallerCount    int8 // the count, 0 or 1, whose assignment has the smaller value there
}

// group is some kinds whose weights have the same ratio: which of their pieces count makes no difference to the weight.
type group struct {
	from, to              int // number of pieces in all groups before it, and with its own
	counting, notCounting int // of its pieces, those that are decided
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
	weights        []scaled.Number // by number of counting optional pieces
	largest        scaled.Number
}

// Best returns the most probable assignment, without the network's scale in its weight; nil where Z is 0.
//
// With c of the legs counting, those count whose pieces have the largest ratios max_{x counted} w(x) / max_{x not counted} w(x):
// exchanging two pieces shows it. So one sort and one pass over c find max_c S_c Π_t w_t. Of assignments of the same weight, up to
// the rounding of their factors, it is the smallest in the order of the variables (within a piece of many links the first
// that is met).
//
// Cost: the elimination of every kind of piece, O(n log n) for n pieces. Errors: fault.Unsupported where Finds says no; the
// context's.
func (f *Form) Best(ctx context.Context) (*btn.Found, error) {
	if err := f.checkFinds(btn.AskMPE); err != nil {
		return nil, err
	}
	if f.countVariables > 1 {
		return f.sweepBest(ctx)
	}
	b := &bestSearch{Form: f, pace: pace.New(ctx), tolerance: f.tieTolerance()}
	b.peaks = make([]pieceMaximum, len(f.kinds))
	for k := range b.peaks {
		if b.pace.Over(16) {
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
	found := &btn.Found{Weight: b.largest.Mul(f.scale), Unique: len(tied) == 1, Close: b.tolerance}
	for _, g := range b.groups {
		if tied[0] > g.from && tied[0] < g.to {
			found.Unique = false
		}
	}
	counted, err := b.chooseCounting(tied)
	if err != nil {
		return nil, err
	}

	found.Values = make([]int, len(f.net.Variables))
	variable := f.variableOf
	for t, p := range f.pieces {
		peak := &b.peaks[f.kindOf[t]]
		c := counted[t]
		found.Unique = found.Unique && peak.isUnique[c]
		for i, link := range p.links {
			found.Values[variable[link]] = peak.terms[c][i]
		}
	}
	return found, nil
}

// tieTolerance returns the relative difference up to which weights of assignments are equal.
func (f *Form) tieTolerance() float64 {
	return 2 * float64(len(f.net.Cores)+len(f.net.Variables)+2) * 0x1p-53
}

// groupByRatio sorts the kinds that may count by their ratios, the largest first, and groups equal ones. It returns false if a kind has no
// weight at all, so that Z is 0, or if the context ends.
func (b *bestSearch) groupByRatio() bool {
	type ratio struct {
		kind int32
		of   scaled.Number
	}
	var ratios []ratio
	for k, p := range b.peaks {
		switch {
		case p.weight[0].IsZero() && p.weight[1].IsZero():
			return false
		case p.weight[0].IsZero():
			b.alwaysCounting += b.kinds[k].count
		case !p.weight[1].IsZero():
			ratios = append(ratios, ratio{int32(k), p.weight[1].Div(p.weight[0])})
			b.optional += b.kinds[k].count
		}
	}
	slices.SortStableFunc(ratios, func(x, y ratio) int { return y.of.Cmp(x.of) })

	b.groupOf = slices.Repeat([]int32{-1}, len(b.kinds))
	b.weights = make([]scaled.Number, 1, b.optional+1)
	b.weights[0] = scaled.One
	for k, p := range b.peaks {
		most := p.weight[0]
		if most.IsZero() {
			most = p.weight[1]
		}
		for range b.kinds[k].count {
			b.weights[0] = b.weights[0].Mul(most)
		}
	}
	groupRatio := scaled.Number{}
	for _, x := range ratios {
		n := len(b.weights) - 1
		if len(b.groups) == 0 || !isNear(x.of, groupRatio, b.tolerance) {
			b.groups = append(b.groups, group{from: n, to: n})
			groupRatio = x.of
		}
		g := len(b.groups) - 1
		b.groupOf[x.kind] = int32(g)
		b.groups[g].to += b.kinds[x.kind].count
		for range b.kinds[x.kind].count {
			b.weights = append(b.weights, b.weights[len(b.weights)-1].Mul(x.of))
		}
	}
	return b.pace.Err() == nil
}

// isNear reports whether x is less than y, which is not smaller, by at most a relative difference.
func isNear(x, y scaled.Number, close float64) bool {
	return y.Sub(x).Cmp(y.Mul(scaled.FromFloat(close))) <= 0
}

// bestCounts returns the numbers of counting optional pieces that have the largest weight, ascending. It returns nil if all weights are 0.
func (b *bestSearch) bestCounts() (tied []int) {
	s := b.slots[0].poly
	for c := range b.weights {
		if b.pace.Over(1) {
			return nil
		}
		if c+b.alwaysCounting >= s.Size() {
			b.weights[c] = scaled.Number{}
			continue
		}
		b.weights[c] = b.weights[c].Mul(s.Coef.At(c + b.alwaysCounting))
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

// chooseCounting returns, by piece, whether it counts. The number of counting optional pieces is one of tied, and they have the largest
// ratios. Of all such choices it takes the one whose assignment is the smallest.
func (b *bestSearch) chooseCounting(tied []int) ([]int8, error) {
	counted := make([]int8, len(b.pieces))
	items := make([]optionalPiece, 0, b.optional)
	variable := b.variableOf
	for t, p := range b.pieces {
		if b.pace.Over(int64(len(p.links))) {
			return nil, b.pace.Err()
		}
		k := b.kindOf[t]
		peak := &b.peaks[k]
		if b.groupOf[k] < 0 {
			if peak.weight[0].IsZero() {
				counted[t] = 1
			}
			continue
		}
		next := optionalPiece{piece: int32(t), group: b.groupOf[k], firstDifference: -1}
		for i, link := range p.links {
			v := variable[link]
			if peak.terms[0][i] != peak.terms[1][i] && (next.firstDifference < 0 || v < next.firstDifference) {
				next.firstDifference, next.smallerCount = v, 0
				if peak.terms[1][i] < peak.terms[0][i] {
					next.smallerCount = 1
				}
			}
		}
		items = append(items, next)
	}
	slices.SortFunc(items, func(next, y optionalPiece) int { return next.firstDifference - y.firstDifference })

	// So many count as some entry of tied between low and high says.
	low, high := 0, b.optional
	for _, next := range items {
		if b.pace.Over(8) {
			return nil, b.pace.Err()
		}
		group := &b.groups[next.group]
		lowIfCounting, highIfNot := max(low, group.from+group.counting+1), min(high, group.to-group.notCounting-1)
		if next.smallerCount == 1 && hasEntryBetween(tied, lowIfCounting, high) || !hasEntryBetween(tied, low, highIfNot) {
			counted[next.piece] = 1
			group.counting++
			low = lowIfCounting
		} else {
			group.notCounting++
			high = highIfNot
		}
	}
	return counted, nil
}

// hasEntryBetween reports whether an ascending list has an entry from low to high.
func hasEntryBetween(list []int, low, high int) bool {
	i, _ := slices.BinarySearch(list, low)
	return i < len(list) && list[i] <= high
}
