package exact

// Contractions by chains of states without signs, which resolve doubts about terms of both signs.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// wideWork is the largest ratio of the flops of chains without signs to the flops of terms of both signs for which chains are tried
// before wide numbers.
// Chosen: about the cost of a flop in wide numbers relative to float64. Of noisy-or over 1,000
// parents each, 8 there and 100 not, all marginals take 2.3 s of wall time with it on a loaded
// machine, 11 s in wide numbers.
const wideWork = 100.0

// contractUnsigned contracts the network with chains of states in place of terms of both signs. ok is false if it does not resolve the
// doubt of value: no digits cancelled, signs remain in the chains, they take more work than wide numbers, or the result is in doubt, too.
func (j run) contractUnsigned(value btn.Value) (resolved btn.Value, ok bool, err error) {
	if value.Digits == 0 || j.Joint != nil {
		return value, false, nil
	}
	star, err := lower.Build(j.Ctx, j.Net)
	if err != nil {
		return value, false, err
	}
	chains, err := lower.BuildUnsigned(j.Ctx, j.Net, star)
	if err != nil || chains == star || chains.Unfit != "" || chains.Signed() {
		return value, false, err
	}
	order, cost, err := j.chainOrder(star, chains)
	if err != nil || cost.Flops > wideWork*value.Flops || cost.Bytes > float64(j.Memory) {
		return value, false, err
	}
	if j.M != nil {
		clear(j.M.At)
	}
	resolved, err = j.contractAlong(chains, order)
	if err != nil && j.Ctx.Err() == nil {
		return value, false, nil // wide numbers have no range
	}
	resolved.Flops += value.Flops
	return resolved, err == nil && resolved.Doubt == "", err
}

// chainOrder returns an order that sweeps over the variables in the sequence of their chains, which is the min-fill order of star, and
// its price. A state of a chain is eliminated before the last variable of its tables.
func (j run) chainOrder(star, chains *sumproduct.Expression) ([]int, query.Cost, error) {
	starOrder, err := contractionorder.MinFill(j.Ctx, star.Hypergraph())
	if err != nil {
		return nil, query.Cost{}, err
	}
	place := make([]int, len(star.Dims))
	for position, i := range starOrder {
		place[i] = position
	}

	const never = math.MinInt
	variable := slices.Repeat([]int{never}, len(chains.Dims)) // twice its place
	for v, i := range chains.Variables {
		if i >= 0 && star.Variables[v] >= 0 {
			variable[i] = 2 * place[star.Variables[v]]
		}
	}
	key := slices.Clone(variable)
	for t := range chains.Tables {
		last := never + 1
		for _, i := range chains.Tables[t].Scope {
			last = max(last, variable[i])
		}
		for _, i := range chains.Tables[t].Scope {
			if variable[i] == never {
				key[i] = max(key[i], last-1)
			}
		}
	}

	h := chains.Hypergraph()
	var order []int
	for i, d := range h.Dims {
		if d > 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
	cost, err := contractionorder.EvaluateOrder(j.Ctx, h, order)
	return order, cost, err
}
