package minibuckets

// Bounds of a least sum of costs that are whole numbers: no rounding.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Costs is a function of some indices, the last one fastest.
type Costs struct {
	Scope []int
	Of    []int64
}

// Forbidden is the cost of the impossible. Below half of it every sum is right.
const Forbidden = 1 << 58

// Least is a bound of the least sum, from below, and its messages.
type Least struct {
	Bound    int64
	Tables   []Costs // the functions, then the messages
	Messages [][]int // by position in the order, those of its index in Tables
}

// LeastWork is the number of entries that RunLeast looks at.
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

// LeastBytes is the memory that RunLeast takes: of its messages, and of the products of one index at once.
func (p *Plan) LeastBytes() float64 {
	most := 0.0
	for k, minis := range p.buckets {
		own := 0.0
		for r := range minis {
			own += 8 * p.entries(k, r)
		}
		most = max(most, own)
	}
	return p.Bytes + most
}

// entries is the size of the product of a mini-bucket.
func (p *Plan) entries(k, r int) float64 {
	n := 1.0
	for _, i := range p.buckets[k][r].scope {
		n *= float64(p.dims[i])
	}
	return n
}

// RunLeast bounds the least sum of functions whose shape the plan is for. It returns nil where costs are too large for sums in 63 bits. The
// only error is the context's, which is looked at once per product. Cost: LeastWork and LeastBytes.
func RunLeast(ctx context.Context, functions []Costs, p *Plan) (*Least, error) {
	b := &Least{Tables: slices.Clone(functions), Messages: make([][]int, len(p.buckets))}
	below := 0.0 // no rest of a sum is lower
	lowest := func(of []int64) {
		if len(of) > 0 {
			below += min(0, float64(slices.Min(of)))
		}
	}
	for _, f := range functions {
		lowest(f.Of)
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
				for _, moved := range level(m, minis, products, p.dims) {
					lowest(moved)
				}
			}
		}
		for r := range minis {
			scope, d := minis[r].scope, p.dims[p.Order[k]]
			of := make([]int64, len(products[r])/d)
			for at := range of {
				of[at] = slices.Min(products[r][at*d:][:d])
			}
			lowest(of)
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

// addCosts adds a table to a product.
func addCosts(product []int64, scope, own, dims []int, of []int64) {
	walk(scope, own, dims, func(at, offset int, offsets []int) {
		row, from := product[at:at+len(offsets)], of[offset:]
		for j, o := range offsets {
			if x := from[o]; row[j] < Forbidden && x < Forbidden {
				row[j] = min(row[j]+x, Forbidden)
			} else {
				row[j] = Forbidden
			}
		}
	})
}

// level moves costs of the indices that products share between them until their least ones are equal, and returns what it has added to
// each: the sums are 0. What one forbids is forbidden in all.
func level(m move, minis []mini, products [][]int64, dims []int) [][]int64 {
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
		mean, rest, possible := int64(0), int64(0), true
		for j := range moved {
			mean += moved[j][a] / count
			rest += moved[j][a] % count
			possible = possible && moved[j][a] < Forbidden
		}
		for j := range moved {
			switch {
			case !possible:
				moved[j][a] = Forbidden
			case j == 0:
				moved[j][a] = mean + rest - moved[j][a]
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
