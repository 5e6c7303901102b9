package exact

// Doubts of terms of both signs, settled by chains of states that have none.

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

// wideWork is the largest ratio of the flops of chains without signs to the flops of terms of both
// signs, which left a doubt, at which chains settle it before wide numbers do.
// Chosen: about the cost of a flop in wide numbers relative to float64. Of noisy-or over 1,000
// parents each, 8 there and 100 not, all marginals take 2.3 s of wall time with it on a loaded
// machine, 11 s in wide numbers.
const wideWork = 100.0

// unsigned contracts the network with chains of states in the place of terms of both signs, where
// these leave a doubt of the value they gave, and that takes less time than wide numbers. It
// returns false where it does not, or where signs are left.
func (j run) unsigned(value btn.Value) (btn.Value, bool, error) {
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
	order, cost, err := j.alongChains(star, chains)
	if err != nil || cost.Flops > wideWork*value.Flops || cost.Bytes > float64(j.Memory) {
		return value, false, err
	}
	if j.M != nil {
		clear(j.M.At)
	}
	settled, err := j.ordered(chains, order)
	if err != nil && j.Ctx.Err() == nil {
		return value, false, nil // wide numbers have no range
	}
	settled.Flops += value.Flops
	return settled, err == nil && settled.Doubt == "", err
}

// alongChains is the order that sweeps over the variables in the sequence in which chains have them,
// that of star's min-fill order: before a variable goes every state that comes before it.
func (j run) alongChains(star, chains *sumproduct.Expression) ([]int, query.Cost, error) {
	along, err := contractionorder.MinFill(j.Ctx, star.Hypergraph())
	if err != nil {
		return nil, query.Cost{}, err
	}
	place := make([]int, len(star.Dims))
	for at, i := range along {
		place[i] = at
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
