package minibuckets

// Bounds of the least sum of costs that are integers: nothing is rounded.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Costs is a table of integer costs over some indices, the last one fastest.
type Costs struct {
	Scope  []int
	Values []int64
}

// Forbidden is the cost of what is impossible. Sums below half of it are exact.
const Forbidden = 1 << 58

// LowerBound is a lower bound of the least sum, with its messages.
type LowerBound struct {
	Bound    int64
	Tables   []Costs // the functions, then the messages
	Messages [][]int // by position in the order: the numbers, in Tables, of the messages of its mini-buckets
}

// LeastWork returns the number of entries that BoundLeastSum reads or writes: each product once and once for each of its tables, and
// twice for each of its moves.
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

// LeastBytes returns the memory of BoundLeastSum: that of its messages, and of the products of one index at a time.
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

// BoundLeastSum bounds the least sum of cost functions from below. The plan is for functions of their scopes. It returns nil if costs are
// too large for sums in 63 bits. The only error is the context's, which is looked at once per product. Cost: LeastWork and LeastBytes.
func BoundLeastSum(ctx context.Context, functions []Costs, p *Plan) (*LowerBound, error) {
	b := &LowerBound{Tables: slices.Clone(functions), Messages: make([][]int, len(p.buckets))}
	lowest := 0.0 // a lower bound of all partial sums: the sum of the least costs of all tables, if they are below 0
	addLowest := func(costs []int64) {
		if len(costs) > 0 {
			lowest += min(0, float64(slices.Min(costs)))
		}
	}
	for _, f := range functions {
		addLowest(f.Values)
		if len(f.Scope) == 0 {
			b.Bound = min(b.Bound+f.Values[0], Forbidden)
		}
	}

	for k, minis := range p.buckets {
		// The sums of the mini-buckets' tables.
		products := make([][]int64, len(minis))
		for r := range minis {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			products[r] = make([]int64, sumproduct.Size(p.dims, minis[r].scope))
			for _, t := range minis[r].tables {
				addCosts(products[r], minis[r].scope, b.Tables[t].Scope, p.dims, b.Tables[t].Values)
			}
		}

		// The moves, which tighten the bound.
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

		// The messages: the minimum over the index, which is the last and fastest one of each product.
		d := p.dims[p.Order[k]]
		for r := range minis {
			scope := minis[r].scope
			message := make([]int64, len(products[r])/d)
			for m := range message {
				message[m] = slices.Min(products[r][m*d:][:d])
			}
			addLowest(message)
			b.Messages[k] = append(b.Messages[k], len(b.Tables))
			b.Tables = append(b.Tables, Costs{scope[:len(scope)-1], message})
			if len(scope) == 1 {
				b.Bound = min(b.Bound+message[0], Forbidden)
			}
		}
		if -lowest > Forbidden/4 {
			return nil, nil
		}
	}
	return b, nil
}

// addCosts adds the costs of a table over subscope to those of a product over scope, which has the indices of subscope and others. Sums are
// at most Forbidden.
func addCosts(product []int64, scope, subscope, dims []int, costs []int64) {
	walkBlocks(scope, subscope, dims, func(first, base int, offsets []int) {
		block, entries := product[first:first+len(offsets)], costs[base:]
		for j, offset := range offsets {
			if x := entries[offset]; block[j] < Forbidden && x < Forbidden {
				block[j] = min(block[j]+x, Forbidden)
			} else {
				block[j] = Forbidden
			}
		}
	})
}

// equalise moves costs between the products of the mini-buckets m.between. Afterwards all have the same least cost for each combination of
// values of the indices m.shared, up to a remainder that the first one gets. It returns the costs that it has added to each product; they
// add up to 0. A combination that one product forbids becomes forbidden in all.
func equalise(m move, minis []mini, products [][]int64, dims []int) (moved [][]int64) {
	// The least cost of each product for each combination of values.
	combinations := sumproduct.Size(dims, m.shared)
	least := make([][]int64, len(m.between))
	for j, r := range m.between {
		least[j] = slices.Repeat([]int64{Forbidden}, combinations)
		walkBlocks(minis[r].scope, m.shared, dims, func(first, base int, offsets []int) {
			block, minima := products[r][first:first+len(offsets)], least[j][base:]
			for i, offset := range offsets {
				minima[offset] = min(minima[offset], block[i])
			}
		})
	}

	// Their mean less each least cost is moved, in the same memory.
	moved = least
	count := int64(len(moved))
	for a := range combinations {
		mean, remainder, isPossible := int64(0), int64(0), true // the sum of the least costs is count·mean + remainder
		for j := range least {
			mean += least[j][a] / count
			remainder += least[j][a] % count
			isPossible = isPossible && least[j][a] < Forbidden
		}
		for j := range moved {
			switch {
			case !isPossible:
				moved[j][a] = Forbidden
			case j == 0:
				moved[j][a] = mean + remainder - least[j][a]
			default:
				moved[j][a] = mean - least[j][a]
			}
		}
	}
	for j, r := range m.between {
		addCosts(products[r], minis[r].scope, m.shared, dims, moved[j])
	}
	return moved
}
