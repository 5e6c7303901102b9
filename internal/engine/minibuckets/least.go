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
	s := leastSum{
		plan: p, bound: &LowerBound{Tables: slices.Clone(functions), Messages: make([][]int, len(p.buckets))},
	}
	for _, f := range functions {
		s.noteLeast(f.Values)
		if len(f.Scope) == 0 {
			s.addToBound(f.Values[0])
		}
	}
	for k := range p.buckets {
		products, err := s.addUp(ctx, k)
		if err != nil {
			return nil, err
		}
		if err := s.tighten(ctx, k, products); err != nil {
			return nil, err
		}
		s.sendMessages(k, products)
		// s.lowest is below all partial sums. Forbidden/4 is chosen: far from the sums up to Forbidden/2, which are exact.
		if -s.lowest > Forbidden/4 {
			return nil, nil // costs are too large
		}
	}
	return s.bound, nil
}

// leastSum is the state of a run of BoundLeastSum.
type leastSum struct {
	plan   *Plan
	bound  *LowerBound // so far
	lowest float64     // a lower bound of all partial sums: the sum of the least costs of all tables, where they are below 0
}

// noteLeast lowers s.lowest by the least cost of a table, if it is below 0.
func (s *leastSum) noteLeast(costs []int64) {
	if len(costs) > 0 {
		s.lowest += min(0, float64(slices.Min(costs)))
	}
}

// addToBound adds the cost of a table without indices to the bound.
func (s *leastSum) addToBound(cost int64) { s.bound.Bound = min(s.bound.Bound+cost, Forbidden) }

// addUp returns, for each mini-bucket at position k of the order, the sum of its tables: its product, since costs add up where weights are
// multiplied.
func (s *leastSum) addUp(ctx context.Context, k int) ([][]int64, error) {
	minis, dims := s.plan.buckets[k], s.plan.dims
	products := make([][]int64, len(minis))
	for r := range minis {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		products[r] = make([]int64, sumproduct.Size(dims, minis[r].scope))
		for _, t := range minis[r].tables {
			addCosts(products[r], minis[r].scope, s.bound.Tables[t].Scope, dims, s.bound.Tables[t].Values)
		}
	}
	return products, nil
}

// tighten moves costs between the products at position k, which tightens the bound. A product is the sum of the costs of a mini-bucket; the
// sum of all products stays as it is.
func (s *leastSum) tighten(ctx context.Context, k int, products [][]int64) error {
	for range sweeps(s.plan.moves[k]) { // twice, or once for a single move
		for _, m := range s.plan.moves[k] {
			if err := ctx.Err(); err != nil {
				return err
			}
			for _, moved := range equalise(m, s.plan.buckets[k], products, s.plan.dims) {
				s.noteLeast(moved)
			}
		}
	}
	return nil
}

// sendMessages minimises the products at position k over the index there, which is the last and fastest one of each product. A product is
// the sum of the costs of a mini-bucket. The results are messages, new tables for later positions. A message without indices goes into
// the bound.
func (s *leastSum) sendMessages(k int, products [][]int64) {
	d := s.plan.dims[s.plan.Order[k]]
	for r, product := range products {
		message := make([]int64, len(product)/d)
		for m := range message {
			message[m] = slices.Min(product[m*d:][:d])
		}
		s.noteLeast(message)
		scope := s.plan.buckets[k][r].scope
		s.bound.Messages[k] = append(s.bound.Messages[k], len(s.bound.Tables))
		s.bound.Tables = append(s.bound.Tables, Costs{scope[:len(scope)-1], message})
		if len(scope) == 1 {
			s.addToBound(message[0])
		}
	}
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
// add up to 0. A combination that one product forbids becomes forbidden in all. A product is the sum of the costs of a mini-bucket, which
// is some of the tables of an index.
func equalise(m move, minis []mini, products [][]int64, dims []int) (moved [][]int64) {
	moved = make([][]int64, len(m.between)) // the least costs, which replaceByMoves replaces
	for j, r := range m.between {
		moved[j] = leastCosts(products[r], minis[r].scope, m.shared, dims)
	}
	replaceByMoves(moved)
	for j, r := range m.between {
		addCosts(products[r], minis[r].scope, m.shared, dims, moved[j])
	}
	return moved
}

// leastCosts returns, for each combination of values of the indices in subscope, the least entry of a product, a table of costs over scope.
func leastCosts(product []int64, scope, subscope, dims []int) []int64 {
	least := slices.Repeat([]int64{Forbidden}, sumproduct.Size(dims, subscope))
	walkBlocks(scope, subscope, dims, func(first, base int, offsets []int) {
		block, minima := product[first:first+len(offsets)], least[base:]
		for i, offset := range offsets {
			minima[offset] = min(minima[offset], block[i])
		}
	})
	return least
}

// replaceByMoves replaces the least costs of products by what has to be added to each to make them equal: their mean, less the least cost
// itself. The first product gets the remainder, by which the mean of integers is too small. costs is by product and combination. If one
// product forbids a combination, Forbidden is added to all.
func replaceByMoves(costs [][]int64) {
	count := int64(len(costs))
	for a := range costs[0] {
		mean, remainder, isPossible := int64(0), int64(0), true // the sum of the least costs is count·mean + remainder
		for j := range costs {
			mean += costs[j][a] / count
			remainder += costs[j][a] % count
			isPossible = isPossible && costs[j][a] < Forbidden
		}
		for j := range costs {
			switch {
			case !isPossible:
				costs[j][a] = Forbidden
			case j == 0:
				costs[j][a] = mean + remainder - costs[j][a]
			default:
				costs[j][a] = mean - costs[j][a]
			}
		}
	}
}
