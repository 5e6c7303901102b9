package exact

// Doubts about a contraction in float64, and the contraction in wide numbers that resolves them.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/wide"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// doubtLost is the doubt if entries vanished below the range of float64.
	doubtLost = "entries span more than float64 holds, and terms of the total may be missing"
	// tolerance is the rounding, relative to Z, up to which a sum of terms of both signs is exact.
	tolerance = 1e-10
)

// RoundingBound returns an upper bound of the error of a total, abs · count · 2^−53. abs is the sum of |terms|, and each term is rounded
// count times, by at most 2^−53 of its size at a time.
func RoundingBound(abs scaled.Number, count float64) *scaled.Number {
	bound := abs.Mul(scaled.FromFloat(math.Ldexp(count, -53)))
	return &bound
}

// CancelledDigits returns the number of decimal digits of a total z that cancelled, log10 (abs/|z|). abs is Σ|terms|, and rounding is the
// largest error of z by rounding. doubt says in words why z is not known to be exact: if rounding exceeds 1e-10 of z, or if z is 0 and
// the terms are not. Otherwise it is "".
func CancelledDigits(z, abs scaled.Number, rounding *scaled.Number) (digits float64, doubt string) {
	if abs.IsZero() {
		return 0, ""
	}
	if z.IsZero() {
		return 0, "terms of both signs cancel to 0 in float64, which proves nothing"
	}

	digits = max(0, abs.Div(z.Abs()).Log10Abs())
	if relative := rounding.Div(z.Abs()).Float64(); !(relative <= tolerance) {
		return digits, fmt.Sprintf("terms of both signs cancel: %.1f digits are lost, and ln Z "+
			"may be off by %.1g", digits, relative)
	}
	return digits, ""
}

// noteCancellation sets Digits and Rounding of an answer, and Doubt if there is none yet. abs is Σ|terms| of a.Z. roundings is the
// largest number of times that a term is rounded.
func (a *Answer) noteCancellation(abs scaled.Number, roundings float64) {
	a.Rounding = RoundingBound(abs, roundings)
	digits, doubt := CancelledDigits(a.Z, abs, a.Rounding)
	a.Digits = digits
	if a.Doubt == "" {
		a.Doubt = doubt
	}
}

// ErrCancelled is the error if no digit of a total is known, since terms of both signs cancel.
var ErrCancelled = errors.New("exact: terms of both signs cancel, and no digit of the " +
	"total is known")

// ContractWide contracts a network under its query's evidence in wide numbers, which have more digits and exponents than float64. It
// returns Z and, if they are asked for, the marginals of all variables and the joint marginal of set. Doubt states why even wide numbers
// may not be enough. It is slow and has no slices.
//
// Errors: over budget, with the price, before anything is computed; ErrCancelled (fault.Unsupported); the context's.
func ContractWide(
	ctx context.Context, net *btn.Network, marginals bool, set []int, memory int64,
) (Answer, error) {
	expression, err := lower.BuildWide(ctx, net)
	if err != nil {
		return Answer{}, err
	}
	if memory <= 0 {
		memory = query.DefaultMemory
	}

	// The contraction, with one more index for a joint marginal.
	p := &Prepared{net: net, given: expression, marginals: marginals}
	if len(set) > 0 {
		if err := p.addCells(set, memory); err != nil {
			return Answer{}, err
		}
	}

	r, err := wide.Contract(ctx, expression, wide.Options{
		Memory:    memory,
		Marginals: p.needsMarginals(),
	})
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Z: r.Z, Flops: r.Flops, Digits: r.Digits}
	if a.Doubt, err = p.describeDoubt(r); err != nil {
		return Answer{}, err
	}
	if marginals {
		a.Marginals = p.wideMarginals(r)
	}

	if !r.Z.IsZero() && r.Marginals != nil { // otherwise there are no probabilities, or none are wanted
		p.addProbabilities(&a, r)
	}
	return a, nil
}

// addProbabilities adds the joint marginal and the marginals of all variables to an answer, if they are wanted: unnormalised marginals
// divided by Z.
func (p *Prepared) addProbabilities(a *Answer, r wide.Result) {
	probabilities := func(i int) []float64 { // of the values of index i
		row := make([]float64, len(r.Marginals[i]))
		for k, m := range r.Marginals[i] {
			row[k] = m.Div(r.Z).Float64()
		}
		return row
	}
	if p.cells != nil {
		a.Joint = p.jointTable(probabilities)
	}
	if p.marginals {
		a.Rows = make([][]float64, len(p.net.Variables))
		for v := range p.net.Variables {
			i := p.given.Variables[v]
			a.Rows[v] = p.overDomain(v, i, probabilities(i))
		}
	}
}

// describeDoubt returns in words why the total r.Z of wide numbers may not be exact: likelihoods were rounded before, or more digits
// cancelled (r.Digits) than wide numbers have beyond those of float64. It returns "" if the total is exact, and ErrCancelled if no digit is
// known.
// r.Exact reports whether wide numbers had enough digits, r.RelativeError is the error of the total by wide numbers, and r.Cancelled
// reports whether the total is 0 although some terms are not.
func (p *Prepared) describeDoubt(r wide.Result) (string, error) {
	rounded := 0.0 // the error by rounded likelihoods, relative to Z
	if len(p.net.Rounded) > 0 && p.given.Signed() {
		rounded = math.Ldexp(float64(len(p.net.Rounded)), -53) * math.Pow(10, r.Digits) // 2^−53 each, times what cancelled
	}
	switch {
	case r.Exact && rounded > 0 && r.Cancelled: // 0 to all digits, but of rounded numbers
		return "", fault.Wrap(fault.Unsupported, ErrCancelled)
	case r.Exact && rounded <= tolerance:
		return "", nil
	case r.Exact && rounded < policy.LeastCertain: // above that error no digit is certain
		return fmt.Sprintf("terms of both signs cancel: %.1f digits are lost, and likelihoods "+
			"times weights have 16", r.Digits), nil
	case r.Z.IsZero() || r.RelativeError+rounded >= policy.LeastCertain:
		return "", fault.Wrap(fault.Unsupported, ErrCancelled)
	}
	return fmt.Sprintf("terms of both signs cancel: %.0f digits are lost, more than wide numbers "+
		"have to spare", r.Digits), nil
}

// wideMarginals returns the unnormalised marginals of all variables over their domains, by variable. Values that the network excludes have
// marginal 0.
func (p *Prepared) wideMarginals(r wide.Result) [][]scaled.Number {
	marginals := make([][]scaled.Number, len(p.net.Variables))
	for v, variable := range p.net.Variables {
		marginals[v] = make([]scaled.Number, variable.Domain)
		i := p.given.Variables[v]
		for k, m := range r.Marginals[i] {
			marginals[v][p.valueOf(i, k)] = m
		}
	}
	return marginals
}
