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

// contractUnsigned contracts the network with chains of states in place of terms of both signs, so that nothing cancels. star is the
// network as an expression with the terms, and chains is the same with chains. ok is false if that does not resolve the doubt of value:
// no digits cancelled in it, a joint marginal is wanted, entries below 0 remain, the chains take more work than wide numbers or do not
// fit the memory, or the result is in doubt, too.
func (j run) contractUnsigned(value btn.Value) (resolved btn.Value, ok bool, err error) {
	if value.Digits == 0 || j.Joint != nil {
		return value, false, nil
	}
	star, err := lower.Build(j.Ctx, j.Net)
	if err != nil {
		return value, false, err
	}
	chains, err := lower.BuildUnsigned(j.Ctx, j.Net, star)
	if err != nil {
		return value, false, err
	}
	hasChains := chains != star && chains.Unfit == ""
	if !hasChains || chains.Signed() {
		return value, false, nil
	}
	order, cost, err := j.chainOrder(star, chains)
	// A flop in wide numbers, which have more digits and exponents than float64, takes about as long as wideWork others.
	isTooExpensive := cost.Flops > wideWork*value.Flops || cost.Bytes > float64(j.Memory)
	if err != nil || isTooExpensive {
		return value, false, err
	}
	if j.Marginals != nil { // discard the marginals of value
		clear(j.Marginals.At)
	}
	resolved, err = j.contractAlong(chains, order)
	if err != nil && j.Ctx.Err() == nil {
		return value, false, nil // numbers left the range of float64, which wide numbers do not
	}
	resolved.Flops += value.Flops
	return resolved, err == nil && resolved.Doubt == "", err
}

// chainOrder returns an elimination order of the expression chains, and its price. star and chains are the same network, in which a
// tensor is a sum of terms over its variables (star), or a chain of states that goes through its variables one after the other (chains).
// The indices of variables come in the min-fill order of star, which is the sequence in which chains go through them. The index of a
// state comes directly before the last variable that is in a table with it.
func (j run) chainOrder(star, chains *sumproduct.Expression) ([]int, query.Cost, error) {
	starOrder, err := contractionorder.MinFill(j.Ctx, star.Hypergraph())
	if err != nil {
		return nil, query.Cost{}, err
	}
	key := chainKeys(star, chains, starOrder)

	// Only indices with more than one value have to be summed.
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

// chainKeys returns keys by which the indices of chains are sorted to an elimination order. star and chains are the same network: a tensor
// is a sum of terms over its variables in star, and in chains a chain of states that goes through them. starOrder is an order of star. The
// key of a variable's index is twice its position in starOrder, so that keys of states fit in between. The key of a state's index is one
// less than that of the last variable that has a table together with it.
func chainKeys(star, chains *sumproduct.Expression, starOrder []int) []int {
	starPosition := make([]int, len(star.Dims))
	for position, i := range starOrder {
		starPosition[i] = position
	}
	const isState = math.MinInt // in place of the key of a variable
	variableKey := slices.Repeat([]int{isState}, len(chains.Dims))
	for v, i := range chains.Variables {
		if i >= 0 && star.Variables[v] >= 0 {
			variableKey[i] = 2 * starPosition[star.Variables[v]]
		}
	}
	key := slices.Clone(variableKey)
	for t := range chains.Tables {
		lastVariable := isState + 1 // if the table has no variable: a state comes first, at the key lastVariable−1
		for _, i := range chains.Tables[t].Scope {
			lastVariable = max(lastVariable, variableKey[i])
		}
		for _, i := range chains.Tables[t].Scope {
			if variableKey[i] == isState {
				key[i] = max(key[i], lastVariable-1)
			}
		}
	}
	return key
}
