package aggregate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Sensitivity: how P(target | evidence) = Z_t/Z depends on the numbers of the model. Both are linear in
// every one of them, so that P is their ratio, exactly, however far a number varies.

// reportSensitivity fills in the sensitivity, from the derivatives of Z and those of the parts with the
// target.
func (r *estimate) reportSensitivity(
	to *btn.Result, alpha, by []scaled.Number, s *btn.Sensitivity,
) *btn.ErrorInfo {
	z := make([]scaled.Number, len(r.parts))
	each := make([]*btn.Derivatives, len(r.parts))
	for i := range r.parts {
		t := r.parts[i].Target
		if t == nil {
			return failure(fault.Internal, "component %d has no value with the target", i)
		}
		z[i], each[i] = t.Z, t.Derivatives
	}
	with, err := sumDerivatives(alpha, each)
	if err != nil {
		return failure(fault.Internal, "with the target: %v", err)
	}
	if len(with) != len(by) {
		return failure(fault.Internal, "%d derivatives with the target, %d without", len(with), len(by))
	}

	target := s.Target
	target.Range = cmp.Or(target.Range, query.DefaultRange)
	target.Top = cmp.Or(target.Top, query.DefaultTop)
	out := &query.SensitivityResult{Sensitivity: target, Tornado: []query.Swing{}}
	out.P = min(1, max(0, scaled.SumProducts(alpha, z).Div(r.z).Float64()))
	for c := range s.Cores {
		n := len(s.Cores[c].Numbers)
		if n > len(by) {
			return failure(fault.Internal, "%d derivatives, the factors have more numbers", len(by))
		}
		f := numbersOf{core: &s.Cores[c], factor: c, p: out.P, total: shares(by[:n], r.z), target: shares(with[:n], r.z)}
		if bad := f.report(out); bad >= 0 {
			to.Warnings = append(to.Warnings,
				fmt.Sprintf("no sensitivity: the one to number %d of factor %d is beyond float64", bad, c))
			return nil
		}
		by, with = by[n:], with[n:]
	}
	slices.SortStableFunc(out.Tornado, func(a, b query.Swing) int { return cmp.Compare(b.High-b.Low, a.High-a.Low) })
	out.Tornado = slices.Clip(out.Tornado[:min(len(out.Tornado), target.Top)])
	to.Sensitivity = out
	return nil
}

// shares divides numbers by Z.
func shares(by []scaled.Number, z scaled.Number) []float64 {
	out := make([]float64, len(by))
	for k, x := range by {
		out[k] = x.Div(z).Float64()
	}
	return out
}

// numbersOf is one factor: its numbers, and the derivatives of Z and of Z with the target by them, over Z.
type numbersOf struct {
	core          *btn.CoreNumbers
	factor        int
	p             float64
	total, target []float64
}

// report adds what the factor has. It returns the number whose derivative is none, −1 where all are.
func (f *numbersOf) report(out *query.SensitivityResult) int {
	plain := make([]float64, len(f.total))
	for k := range plain {
		if plain[k] = f.target[k] - f.p*f.total[k]; plain[k]-plain[k] != 0 {
			return k
		}
	}
	total, target := f.total, f.target
	var covaried []float64
	if f.core.Row > 0 {
		total, target = f.covary(f.total), f.covary(f.target)
		covaried = make([]float64, len(plain))
		for k := range covaried {
			covaried[k] = target[k] - f.p*total[k]
		}
	}
	out.Derivatives = append(out.Derivatives, plain)
	out.Covaried = append(out.Covaried, covaried)
	for k, theta := range f.core.Numbers {
		if s, moves := f.swing(k, theta, total[k], target[k], out.Range); moves {
			out.Tornado = append(out.Tornado, s)
		}
	}
	return -1
}

// covary returns derivatives by the numbers of a conditional probability table whose rows stay rows:
//
//	D_x − Σ_{y≠x} D_y θ_y/(1 − θ_x)
//
// where the others keep their proportions; of a number that is 1 they have none, and share alike.
func (f *numbersOf) covary(by []float64) []float64 {
	mode := f.core.Row - 1
	d, stride := f.core.Shape[mode], 1
	for _, n := range f.core.Shape[mode+1:] {
		stride *= n
	}
	out := make([]float64, len(by))
	for k := range by {
		from := k/(d*stride)*(d*stride) + k%stride
		rest, others := 0.0, 0.0
		for x := range d {
			if at := from + x*stride; at != k {
				rest += f.core.Numbers[at]
			}
		}
		for x := range d {
			switch at := from + x*stride; {
			case at == k:
			case rest > 0:
				others += by[at] * (f.core.Numbers[at] / rest)
			default:
				others += by[at] / float64(d-1)
			}
		}
		if d > 1 {
			out[k] = by[k] - others
		}
	}
	return out
}

// swing is where P is when a number varies; false where it stays. P is monotonic between both ends, as a
// ratio of two linear functions without a pole.
func (f *numbersOf) swing(k int, theta, total, target, share float64) (query.Swing, bool) {
	s := query.Swing{Factor: f.factor, Number: k, Theta: theta, Low: f.p, High: f.p}
	s.From, s.To = theta*(1-share), theta*(1+share)
	if s.From > s.To {
		s.From, s.To = s.To, s.From
	}
	if f.core.Row > 0 {
		s.To = min(1, s.To)
		v := f.core.Scope[f.core.Row-1]
		s.Of = &v
	}
	for _, end := range []float64{s.From, s.To} {
		below := 1 + (end-theta)*total
		if !(below > 0) {
			continue // nothing is left of Z there: P has no value
		}
		p := min(1, max(0, (f.p+(end-theta)*target)/below))
		s.Low, s.High = min(s.Low, p), max(s.High, p)
	}
	if f.core.Scope != nil {
		s.Variables = f.core.Scope
		s.Values = make([]int, len(f.core.Shape))
		for m := len(s.Values) - 1; m >= 0; m-- {
			s.Values[m] = k % f.core.Shape[m]
			k /= f.core.Shape[m]
		}
	}
	return s, s.High > s.Low && !math.IsNaN(s.High-s.Low)
}
