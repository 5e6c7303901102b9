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

// item is a piece that may count or not.
type item struct {
	piece int32
	group int32
	first int  // the first variable at which its two assignments differ
	least int8 // the count whose assignment is smaller there
}

// group is some kinds whose weights have the same ratio: which of their pieces count makes no difference.
type group struct {
	from, to    int // pieces in all groups before it, and with its own
	ones, zeros int // of its pieces that are decided
}

// best is the choice of the counting pieces.
type best struct {
	*Form
	look    *pace.Pace
	close   float64
	peaks   []peak  // by kind
	in      []int32 // by kind: its group, −1 for none
	groups  []group
	forced  int // pieces that count in any case
	free    int // pieces that may
	weight  []scaled.Number
	largest scaled.Number
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
	if err := f.errFinds(btn.AskMPE); err != nil {
		return nil, err
	}
	if f.vars > 1 {
		return f.sweepBest(ctx)
	}
	b := &best{Form: f, look: pace.New(ctx), close: f.close()}
	b.peaks = make([]peak, len(f.kinds))
	for k := range b.peaks {
		if b.look.Over(16) {
			return nil, b.look.Err()
		}
		var err error
		if b.peaks[k], err = f.peak(ctx, &f.kinds[k], b.close); err != nil {
			return nil, err
		}
	}
	if !b.group() {
		return nil, b.look.Err()
	}
	tied := b.weigh()
	if err := b.look.Err(); err != nil || len(tied) == 0 || f.scale.IsZero() {
		return nil, err
	}
	found := &btn.Found{Weight: b.largest.Mul(f.scale), Unique: len(tied) == 1, Close: b.close}
	for _, g := range b.groups {
		if tied[0] > g.from && tied[0] < g.to {
			found.Unique = false
		}
	}
	counted, err := b.choose(tied)
	if err != nil {
		return nil, err
	}

	found.Values = make([]int, len(f.net.Variables))
	variable := f.variable
	for t, p := range f.piece {
		peak := &b.peaks[f.of[t]]
		c := counted[t]
		found.Unique = found.Unique && peak.unique[c]
		for i, link := range p.links {
			found.Values[variable[link]] = peak.terms[c][i]
		}
	}
	return found, nil
}

// close is the relative difference up to which weights of assignments are equal.
func (f *Form) close() float64 { return 2 * float64(len(f.net.Cores)+len(f.net.Variables)+2) * 0x1p-53 }

// group sorts the kinds that may count by their ratios, largest first; false where some kind has no weight at all.
func (b *best) group() bool {
	type ratio struct {
		kind int32
		of   scaled.Number
	}
	var list []ratio
	for k, p := range b.peaks {
		switch {
		case p.at[0].IsZero() && p.at[1].IsZero():
			return false
		case p.at[0].IsZero():
			b.forced += b.kinds[k].members
		case !p.at[1].IsZero():
			list = append(list, ratio{int32(k), p.at[1].Div(p.at[0])})
			b.free += b.kinds[k].members
		}
	}
	slices.SortStableFunc(list, func(x, y ratio) int { return y.of.Cmp(x.of) })

	b.in = slices.Repeat([]int32{-1}, len(b.kinds))
	b.weight = make([]scaled.Number, 1, b.free+1)
	b.weight[0] = scaled.One
	for k, p := range b.peaks {
		most := p.at[0]
		if most.IsZero() {
			most = p.at[1]
		}
		for range b.kinds[k].members {
			b.weight[0] = b.weight[0].Mul(most)
		}
	}
	first := scaled.Number{}
	for _, x := range list {
		n := len(b.weight) - 1
		if len(b.groups) == 0 || !near(x.of, first, b.close) {
			b.groups = append(b.groups, group{from: n, to: n})
			first = x.of
		}
		g := len(b.groups) - 1
		b.in[x.kind] = int32(g)
		b.groups[g].to += b.kinds[x.kind].members
		for range b.kinds[x.kind].members {
			b.weight = append(b.weight, b.weight[len(b.weight)-1].Mul(x.of))
		}
	}
	return b.look.Err() == nil
}

// near reports whether x is no less than y, which is larger, up to a relative difference.
func near(x, y scaled.Number, close float64) bool {
	return y.Sub(x).Cmp(y.Mul(scaled.FromFloat(close))) <= 0
}

// weigh lists the best numbers of counting free pieces, ascending; none where all terms are 0.
func (b *best) weigh() (tied []int) {
	s := b.slots[0].s
	for c := range b.weight {
		if b.look.Over(1) {
			return nil
		}
		if c+b.forced >= s.Size() {
			b.weight[c] = scaled.Number{}
			continue
		}
		b.weight[c] = b.weight[c].Mul(s.Coef.At(c + b.forced))
		if c == 0 || b.weight[c].Cmp(b.largest) > 0 {
			b.largest = b.weight[c]
		}
	}
	if b.largest.IsZero() {
		return nil
	}
	for c, w := range b.weight {
		if near(w, b.largest, b.close) {
			tied = append(tied, c)
		}
	}
	return tied
}

// choose returns, piece by piece, whether it counts: of all choices with as many as tied says, of the largest ratios, the one
// whose assignment is the smallest.
func (b *best) choose(tied []int) ([]int8, error) {
	counted := make([]int8, len(b.piece))
	items := make([]item, 0, b.free)
	variable := b.variable
	for t, p := range b.piece {
		if b.look.Over(int64(len(p.links))) {
			return nil, b.look.Err()
		}
		k := b.of[t]
		peak := &b.peaks[k]
		if b.in[k] < 0 {
			if peak.at[0].IsZero() {
				counted[t] = 1
			}
			continue
		}
		x := item{piece: int32(t), group: b.in[k], first: -1}
		for i, link := range p.links {
			v := variable[link]
			if peak.terms[0][i] != peak.terms[1][i] && (x.first < 0 || v < x.first) {
				x.first, x.least = v, 0
				if peak.terms[1][i] < peak.terms[0][i] {
					x.least = 1
				}
			}
		}
		items = append(items, x)
	}
	slices.SortFunc(items, func(x, y item) int { return x.first - y.first })

	// So many count as some entry of tied between low and high says.
	low, high := 0, b.free
	for _, x := range items {
		if b.look.Over(8) {
			return nil, b.look.Err()
		}
		g := &b.groups[x.group]
		up, down := max(low, g.from+g.ones+1), min(high, g.to-g.zeros-1)
		if x.least == 1 && within(tied, up, high) || !within(tied, low, down) {
			counted[x.piece] = 1
			g.ones++
			low = up
		} else {
			g.zeros++
			high = down
		}
	}
	return counted, nil
}

// within reports whether an ascending list has an entry from low to high.
func within(list []int, low, high int) bool {
	i, _ := slices.BinarySearch(list, low)
	return i < len(list) && list[i] <= high
}
