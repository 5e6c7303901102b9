package region

// The estimate that the parts make up.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Estimate is belief propagation's answer corrected by regions. Logarithms are in nats.
type Estimate struct {
	LnZ       float64 // ln |Z_BP| + Σ α_r ln (Z_r / Z_BP), the default
	Sign      int     // of Z_BP, and of Z where no region is left out
	LnZBP     float64
	LnZLinear float64 // ln |Z_BP| + ln (1 + Σ α_r (Z_r / Z_BP − 1)); 0 unless LinearOK
	LinearOK  bool    // the sum is positive and half its digits are left
	Regions   int
	Widest    int
	Flops     float64 // done
	// regions left out of LnZ and Marginals: Z_r / Z_BP ≤ 0, or out of range. With any, both are
	// doubtful
	NonPositive int
	Negative    int         // marginals inside regions left out
	Marginals   [][]float64 // per index of the expression; nil where none were asked for
}

// Combine adds up parts that cover all regions, given in order, without gaps. The bits depend on the
// bounds of the parts.
func (p *Prepared) Combine(parts []*Part) (*Estimate, error) {
	est := &Estimate{LnZBP: p.lnZBP, Sign: p.sign, Regions: p.f.Len(), Widest: p.f.Widest}
	var lnZ, linear, absolute floats.Sum
	next := 0
	for _, part := range parts {
		if part.From != next {
			return nil, fault.New(fault.Internal, "region: a part begins at region %d, %d is next",
				part.From, next)
		}
		next = part.To
		lnZ.Plus(part.LnZ)
		linear.Plus(part.Linear)
		absolute.Plus(part.Absolute)
		est.Flops += part.Flops
		est.NonPositive += part.NonPositive
		est.Negative += part.Negative
	}

	if next != p.f.Len() {
		return nil, fault.New(fault.Internal, "region: parts cover %d of %d regions", next, p.f.Len())
	}
	ln := lnZ
	ln.Add(p.lnZBP)
	est.LnZ = ln.Value()
	one := linear
	one.Add(1)
	est.LinearOK = one.Value() > lostDigits*(1+absolute.Value())
	if est.LinearOK {
		est.LnZLinear = p.lnZBP + math.Log1p(linear.Value())
	}
	if p.f.Options.Marginals {
		est.Marginals = p.marginals(parts)
	}
	return est, nil
}

// lostDigits is the part of its terms that a sum must keep.
const lostDigits = 1e-8

// chunkRegions is the most regions in a part of Run's.
const chunkRegions = 4096

// Chunks returns the bounds of the parts that Run makes: part k is regions [bounds[k], bounds[k+1]).
func (f *Family) Chunks() []int {
	n := f.Len()
	size := max(1, min(chunkRegions, (n+63)/64))
	bounds := []int{0}
	for at := size; at < n; at += size {
		bounds = append(bounds, at)
	}
	return append(bounds, n)
}

// Run contracts all regions on some threads (0: GOMAXPROCS) and combines them. The answer has the
// same bits for any number.
func Run(
	ctx context.Context, e *sumproduct.Expression, s *bp.State, f *Family, threads int,
) (*Estimate, error) {
	p, err := Prepare(ctx, e, s, f)
	if err != nil {
		return nil, err
	}
	bounds := f.Chunks()
	parts := make([]*Part, len(bounds)-1)
	err = sumproduct.Share(ctx, sumproduct.Threads(threads), len(parts), func(_, k int) (err error) {
		parts[k], err = p.Part(ctx, bounds[k], bounds[k+1])
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.Combine(parts)
}
