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
	Sign      int     // of Z_BP. It is the sign of Z as well, if NonPositive is 0
	LnZBP     float64 // ln |Z_BP|
	LnZLinear float64 // ln |Z_BP| + ln (1 + Σ α_r (Z_r / Z_BP − 1)); 0 unless LinearOK
	LinearOK  bool    // LnZLinear can be used: 1 + the sum is positive, and half its digits are left
	Regions   int     // number of regions
	Widest    int     // log2 of the largest table of any region's contraction, rounded up
	Flops     float64 // done
	// Regions left out of LnZ and Marginals, because Z_r / Z_BP is ≤ 0 or out of range. If there are any, both are doubtful.
	NonPositive int
	Negative    int         // marginals inside regions that were left out, because of a negative entry or a sum that is 0 or out of range
	Marginals   [][]float64 // by index of the expression; nil if Options.Marginals is false
}

// Combine adds up parts, which have to cover all regions in order and without gaps, and returns the estimate of all. The bits depend on the
// bounds of the parts.
func (p *Prepared) Combine(parts []*Part) (*Estimate, error) {
	est := &Estimate{LnZBP: p.lnZBP, Sign: p.sign, Regions: p.family.Len(), Widest: p.family.Widest}
	var lnZ, linear, absolute floats.Sum
	next := 0 // the first region of the next part
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

	if next != p.family.Len() {
		return nil, fault.New(fault.Internal, "region: parts cover %d of %d regions", next, p.family.Len())
	}

	// ln Z, and the linear estimate Z_BP (1 + linear) if enough digits are left of 1 + linear. Its terms have absolute values of 1 + absolute.
	lnZ.Add(p.lnZBP)
	est.LnZ = lnZ.Value()
	onePlusLinear := linear
	onePlusLinear.Add(1)
	est.LinearOK = onePlusLinear.Value() > minDigitShare*(1+absolute.Value())
	if est.LinearOK {
		est.LnZLinear = p.lnZBP + math.Log1p(linear.Value())
	}
	if p.family.Options.Marginals {
		est.Marginals = p.correctedMarginals(parts)
	}
	return est, nil
}

// minDigitShare is the smallest quotient of a sum and the sum of its absolute terms at which the sum has enough digits: half of 16.
const minDigitShare = 1e-8

// maxPartRegions bounds the regions in a part of Run.
const maxPartRegions = 4096

// partBounds returns the bounds of the parts that Run makes: part k has the regions bounds[k] ≤ r < bounds[k+1].
func (f *Family) partBounds() []int {
	n := f.Len()
	size := max(1, min(maxPartRegions, (n+63)/64)) // regions of a part; at least 64 parts if there are that many regions
	bounds := []int{0}
	for start := size; start < n; start += size {
		bounds = append(bounds, start)
	}
	return append(bounds, n)
}

// Run contracts all regions of a family on the given number of threads (0: GOMAXPROCS) and combines them. The answer has the same bits for
// any number of threads.
func Run(
	ctx context.Context, e *sumproduct.Expression, s *bp.State, f *Family, threads int,
) (*Estimate, error) {
	p, err := Prepare(ctx, e, s, f)
	if err != nil {
		return nil, err
	}
	bounds := f.partBounds()
	parts := make([]*Part, len(bounds)-1)
	err = sumproduct.RunChunks(ctx, sumproduct.Threads(threads), len(parts), func(_, k int) (err error) {
		parts[k], err = p.Part(ctx, bounds[k], bounds[k+1])
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.Combine(parts)
}
