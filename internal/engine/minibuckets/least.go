package minibuckets

// Bounds of the least sum of costs that are integers: nothing is rounded.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Costs is a table of integer costs over some indices, the last one fastest.
type Costs struct {
	Scope []int
	Of    []int64
}

// Forbidden is the cost of what is impossible. Sums below half of it are exact.
const Forbidden = 1 << 58

// Least is a lower bound of the least sum, with its messages.
type Least struct {
	Bound    int64
	Tables   []Costs // the functions, then the messages
	Messages [][]int // by position in the order: the numbers, in Tables, of the messages of its mini-buckets
}

// LeastWork returns the number of entries that RunLeast looks at.
func (p *Plan) LeastWork() (work float64) {
	for k, minis := range p.buckets {
		for r := range minis {
			work += p.entries(k, r) * float64(1+len(minis[r].tables))
		}
		for _, m := range p.moves[k] {
			for _, r := range m.between {
				work += 2 * p.entries(k, r) * float64(sweeps(p.moves[k]))
			}
		}
	}
	return work
}

// LeastBytes returns the memory of RunLeast: that of its messages, and of the products of one index at a time.
func (p *Plan) LeastBytes() float64 {
	largest := 0.0
	for k, minis := range p.buckets {
		products := 0.0
		for r := range minis {
			products += 8 * p.entries(k, r)
		}
		largest = max(largest, products)
	}
	return p.Bytes + largest
}

// entries returns the number of entries of the product of mini-bucket r at position k.
func (p *Plan) entries(k, r int) float64 {
	n := 1.0
	for _, i := range p.buckets[k][r].scope {
		n *= float64(p.dims[i])
	}
	return n
}

// RunLeast bounds the least sum of functions whose shape the plan is for. It returns nil if costs are too large for sums in 63 bits. The
// only error is the context's, which is looked at once per product. Cost: LeastWork and LeastBytes.
func RunLeast(ctx context.Context, functions []Costs, p *Plan) (*Least, error) {
	b := &Least{Tables: slices.Clone(functions), Messages: make([][]int, len(p.buckets))}
	below := 0.0 // a lower bound of all partial sums
	addLowest := func(costs []int64) {
		if len(costs) > 0 {
			below += min(0, float64(slices.Min(costs)))
		}
	}
	for _, f := range functions {
		addLowest(f.Of)
		if len(f.Scope) == 0 {
			b.Bound = min(b.Bound+f.Of[0], Forbidden)
		}
	}
	for k, minis := range p.buckets {
		products := make([][]int64, len(minis))
		for r := range minis {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			products[r] = make([]int64, sumproduct.Size(p.dims, minis[r].scope))
			for _, t := range minis[r].tables {
				addCosts(products[r], minis[r].scope, b.Tables[t].Scope, p.dims, b.Tables[t].Of)
			}
		}
		for range sweeps(p.moves[k]) {
			for _, m := range p.moves[k] {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				for _, moved := range equalise(m, minis, products, p.dims) {
					addLowest(moved)
				}
			}
		}
		for r := range minis {
			scope, d := minis[r].scope, p.dims[p.Order[k]]
			of := make([]int64, len(products[r])/d)
			for at := range of {
				of[at] = slices.Min(products[r][at*d:][:d])
			}
			addLowest(of)
			b.Messages[k] = append(b.Messages[k], len(b.Tables))
			b.Tables = append(b.Tables, Costs{scope[:len(scope)-1], of})
			if len(scope) == 1 {
				b.Bound = min(b.Bound+of[0], Forbidden)
			}
		}
		if -below > Forbidden/4 {
			return nil, nil
		}
	}
	return b, nil
}

// addCosts adds a table of costs over subscope to a product over scope. No sum exceeds Forbidden.
func addCosts(product []int64, scope, subscope, dims []int, costs []int64) {
	walk(scope, subscope, dims, func(at, offset int, offsets []int) {
		row, from := product[at:at+len(offsets)], costs[offset:]
		for j, o := range offsets {
			if x := from[o]; row[j] < Forbidden && x < Forbidden {
				row[j] = min(row[j]+x, Forbidden)
			} else {
				row[j] = Forbidden
			}
		}
	})
}

// equalise moves costs between the products of the mini-buckets m.between. Afterwards all have the same least cost for each combination of
// values of the indices m.shared, up to a remainder that the first one gets. It returns the costs that it has added to each product; they
// add up to 0. A combination that one product forbids becomes forbidden in all.
func equalise(m move, minis []mini, products [][]int64, dims []int) [][]int64 {
	n := sumproduct.Size(dims, m.shared)
	moved := make([][]int64, len(m.between))
	for j, r := range m.between {
		least := slices.Repeat([]int64{Forbidden}, n)
		walk(minis[r].scope, m.shared, dims, func(at, offset int, offsets []int) {
			row, to := products[r][at:at+len(offsets)], least[offset:]
			for i, o := range offsets {
				to[o] = min(to[o], row[i])
			}
		})
		moved[j] = least
	}
	count := int64(len(moved))
	for a := range n {
		mean, remainder, isPossible := int64(0), int64(0), true
		for j := range moved {
			mean += moved[j][a] / count
			remainder += moved[j][a] % count
			isPossible = isPossible && moved[j][a] < Forbidden
		}
		for j := range moved {
			switch {
			case !isPossible:
				moved[j][a] = Forbidden
			case j == 0:
				moved[j][a] = mean + remainder - moved[j][a]
			default:
				moved[j][a] = mean - moved[j][a]
			}
		}
	}
	for j, r := range m.between {
		addCosts(products[r], minis[r].scope, m.shared, dims, moved[j])
	}
	return moved
}
