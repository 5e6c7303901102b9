package region

// Parts of the sums, for one worker each.

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Prepared is an expression in the gauge of a state of belief propagation, ready for a family's regions. It may be used by several
// goroutines.
type Prepared struct {
	family     *Family
	expression *sumproduct.Expression
	state      *bp.State
	lnZBP      float64 // ln |Z_BP|
	sign       int     // of Z_BP, 1 or −1
	gauge      *gauge

	mu   sync.Mutex
	idle []*worker // workers that no call uses
}

// Prepare computes the expression e in the gauge of the messages of s, for the regions of a family that was planned for e's hypergraph: its
// tables are scaled by messages so that the value of belief propagation is 1. Time and memory are linear in the model. Errors:
// fault.FailedEstimate if belief propagation found a contradiction; the context's.
func Prepare(ctx context.Context, e *sumproduct.Expression, s *bp.State, f *Family) (*Prepared, error) {
	ln, sign := s.Z()
	if sign == 0 {
		return nil, fault.New(fault.FailedEstimate, "region: belief propagation has no beliefs: its value is 0")
	}
	gauge, err := newGauge(ctx, f.graph, e, s)
	if err != nil {
		return nil, err
	}
	return &Prepared{family: f, expression: e, state: s, lnZBP: ln, sign: sign, gauge: gauge}, nil
}

// WithFamily returns p for another family, which must be planned for the same hypergraph. The two share the data that depend on the
// expression and the state only. WithFamily(nil) has only these data, to be kept for further families.
func (p *Prepared) WithFamily(f *Family) *Prepared {
	return &Prepared{family: f, expression: p.expression, state: p.state, lnZBP: p.lnZBP, sign: p.sign, gauge: p.gauge}
}

// Part is the contribution of the regions From ≤ r < To to the sums.
type Part struct {
	From, To    int
	LnZ         floats.Sum // Σ α_r ln (Z_r / Z_BP)
	Linear      floats.Sum // Σ α_r (Z_r / Z_BP − 1)
	Absolute    floats.Sum // Σ |α_r (Z_r / Z_BP − 1)|
	NonPositive int        // regions left out of LnZ and of Logs, because Z_r / Z_BP is not a positive finite number
	Flops       float64    // done
	Negative    int        // marginals left out of Logs, because of a negative entry or a sum that is not a positive finite number
	// Of the marginals: Logs has Σ α_r ln (P_r(x) / P_BP(x)) for all values x of each of Indices,
	// one after the other; −Inf for values that some region excludes.
	Indices []int
	Logs    []float64
}

// Sums returns Σ α_r ln (Z_r / Z_BP) and Σ α_r (Z_r / Z_BP − 1) over the part's regions, each rounded once.
func (part *Part) Sums() (ln, linear float64) { return part.LnZ.Value(), part.Linear.Value() }

// takeWorker returns an idle worker, or a new one if none is idle. The caller gives it back by release.
func (p *Prepared) takeWorker() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w
	}
	return newWorker(p.family.graph, p.gauge)
}

// release makes a worker idle, for the next call of takeWorker.
func (p *Prepared) release(w *worker) {
	p.mu.Lock()
	p.idle = append(p.idle, w)
	p.mu.Unlock()
}

// Part contracts the regions from ≤ r < to of the family and returns their contribution to the sums, like Σ_r α_r ln(Z_r/Z_BP) with the
// counting numbers α_r of the regions. The bits depend on from and to only.
func (p *Prepared) Part(ctx context.Context, from, to int) (*Part, error) {
	if from < 0 || to > p.family.Len() || from > to {
		return nil, fault.New(fault.BadInput, "region: part [%d, %d) of %d regions", from, to, p.family.Len())
	}
	w := p.takeWorker()
	defer p.release(w)
	part := &Part{From: from, To: to}
	for r := from; r < to; r++ {
		if (r-from)%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if legs, alpha := p.family.source.region(r, w); len(legs) > 0 {
			part.addRegion(w, legs, alpha, p.family.Options.Marginals)
		}
	}

	if p.family.Options.Marginals {
		part.Indices, part.Logs = w.takeLogs()
	}
	return part, nil
}

// addRegion contracts the region with the given legs and counting number α, and adds its terms to the sums: α ln (Z_r / Z_BP) and
// α (Z_r / Z_BP − 1), where Z_r is the value of the region and Z_BP that of belief propagation. Terms that are no finite numbers are left
// out. If marginals is true, it adds the logarithms of the region's marginals to those of the worker. A leg is one index of one table.
func (part *Part) addRegion(w *worker, legs []int32, alpha int64, marginals bool) {
	ratio, program := w.ratio(legs, marginals) // Z_r / Z_BP
	part.Flops += program.Flops
	weight := float64(alpha)
	if !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
		part.Linear.Add(weight * (ratio - 1))
		part.Absolute.Add(math.Abs(weight * (ratio - 1)))
	}
	if !isPositiveFinite(ratio) {
		part.NonPositive++
		return
	}

	part.LnZ.Add(weight * math.Log(ratio))
	if marginals {
		part.Flops += (marginalFlops - 1) * program.Flops // value and marginals together take marginalFlops·program.Flops
		program.marginals(&w.Memory, func(i int, marginal []float64) {
			if !w.addLogs(w.indexIDs[i], marginal, weight) {
				part.Negative++
			}
		})
	}
}

// addLogs adds α ln (P_r / P_BP) to the worker's logs of index i, for each of its values. P_r is marginal, normalised, and P_BP the belief.
// A value that P_r excludes gets −Inf for good. If an entry of marginal is negative or the sum is not a positive finite number, it adds
// nothing and ok is false. P_r/P_BP is how the region r corrects the marginal of index i.
func (w *worker) addLogs(i int32, marginal []float64, alpha float64) (ok bool) {
	total := 0.0
	for _, p := range marginal {
		if p < 0 {
			return false
		}
		total += p
	}

	if !isPositiveFinite(total) {
		return false
	}

	if w.logs == nil {
		w.logs = make([][]float64, len(w.graph.dims))
	}
	if w.logs[i] == nil {
		w.logs[i] = make([]float64, len(marginal))
		w.corrected = append(w.corrected, i)
	}
	for x, p := range marginal {
		switch belief := w.gauge.belief[i][x]; {
		case p == 0:
			w.logs[i][x] = math.Inf(-1)
		case belief > 0 && !math.IsInf(w.logs[i][x], -1):
			w.logs[i][x] += alpha * math.Log(p/total/belief)
		}
	}

	return true
}

// takeLogs returns the indices that the worker's regions correct, ascending, and the logarithms of their corrections, index after index.
// The worker then has none of them. A region corrects the marginal of each of its indices by a factor.
func (w *worker) takeLogs() (indices []int, logs []float64) {
	slices.Sort(w.corrected)
	for _, i := range w.corrected {
		indices = append(indices, int(i))
		logs = append(logs, w.logs[i]...)
		w.logs[i] = nil
	}
	w.corrected = w.corrected[:0]
	return indices, logs
}
