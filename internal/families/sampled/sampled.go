package sampled

// Sampled components: what each of some chains weighs.

import (
	"context"
	"math"
	"runtime"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contraction"
	"github.com/basetensor/basetensor/internal/engine/importance"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/internal/sampling"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Contract implements contraction.Contractor. Z is the mean of the weights.
func (q *Sampled) Contract(ctx context.Context, p *problem.Problem, want problem.Want) (btn.Value, error) {
	if err := contraction.NoJoint(want); err != nil {
		return btn.Value{}, err
	}
	if q.Along.Of > 0 {
		return states(ctx, p, q, want)
	}
	if q.Along.Kind == ByStructure {
		return structure(ctx, p, q, want.Marginals)
	}
	if q.Along.Kind != ByAnnealing {
		return proposed(ctx, p, q, want.Marginals)
	}
	chains, err := ChainsOf(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if shape := chains.Prepared.Shape(); shape != q.Along.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	path := Path(q.Along)
	threads, err := threadsOf(p, func(threads int) float64 {
		return chains.Model.Bytes(path, q.To-q.From, threads, want.Marginals)
	})
	if err != nil {
		return btn.Value{}, err
	}

	w, err := chains.Model.Run(ctx, path, q.From, q.To, threads, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	v := btn.Value{
		Z:       scaled.FromLog(sampling.LnMean(w.Ln)),
		Flops:   chains.Model.Flops(path.Step, path.Rungs) * path.Starts() * float64(q.To-q.From),
		Weights: &btn.Weights{Ln: w.Ln},
	}
	if !want.Marginals || math.IsInf(w.Top, -1) {
		return v, nil
	}
	v.Weights.Top = w.Top
	return v, shares(v.Weights, chains.Prepared, w.Share, w.Squares)
}

// threadsOf returns the number of threads of chains that the memory holds; plans assume one. Weights do not depend on it.
func threadsOf(p *problem.Problem, bytes func(threads int) float64) (threads int, err error) {
	if threads = p.Threads; threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	for threads > 1 && bytes(threads) > float64(p.Memory) {
		threads--
	}
	if need := bytes(threads); need > float64(p.Memory) {
		return 0, fault.New(fault.OverBudget, "%w: chains need %.3g bytes, %d are allowed", contraction.ErrMemory, need, p.Memory)
	}
	return threads, nil
}

// proposed weighs independent draws.
func proposed(ctx context.Context, p *problem.Problem, q *Sampled, marginals bool) (btn.Value, error) {
	proposal, prepared, err := proposalOf(ctx, p, q.Along, marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if bytes := importance.Bytes(q.To-q.From, len(prepared.Expression().Dims), marginals); bytes > float64(p.Memory) {
		return btn.Value{}, fault.New(fault.OverBudget, "%w: draws need %.3g bytes, %d are allowed", contraction.ErrMemory, bytes, p.Memory)
	}
	w, err := proposal.Run(ctx, q.Along.Seed, q.From, q.To, p.Threads, marginals)
	if err != nil {
		return btn.Value{}, err
	}
	v := btn.Value{
		Z:       scaled.FromLog(sampling.LnMean(w.Ln)),
		Flops:   q.Along.Setup + q.Along.Each*float64(q.To-q.From),
		Weights: &btn.Weights{Ln: w.Ln},
	}
	if most := proposal.LnMost(); !math.IsInf(most, 0) {
		v.Weights.LnMost = &most
	}
	if !marginals || math.IsInf(w.Top, -1) {
		return v, nil
	}
	v.Weights.Top = w.Top
	return v, shares(v.Weights, prepared, w.Share, w.Squares)
}

// structure weighs chains from the low-rank part of the network's tables.
func structure(ctx context.Context, p *problem.Problem, q *Sampled, marginals bool) (btn.Value, error) {
	w, flops, err := structured.Draw(ctx, p, q.Along.Structure, q.Along.Seed, q.From, q.To, marginals)
	if err != nil {
		return btn.Value{}, err
	}
	scale := p.Net.Scale.LogAbs()
	for k := range w.Ln {
		w.Ln[k] += scale
	}
	v := btn.Value{Z: scaled.FromLog(sampling.LnMean(w.Ln)), Flops: q.Along.Setup + flops, Weights: &btn.Weights{Ln: w.Ln}}
	if w.Share != nil {
		v.Weights.Top, v.Weights.Domains = w.Top+scale, contraction.Domains(p.Net)
		v.Weights.Share, v.Weights.Squares = w.Share, w.Squares
	}
	return v, nil
}

// shares fills in sums over the values of indices as sums over those of the network's variables.
func shares(w *btn.Weights, prepared *truncated.Prepared, share, squares [][]float64) (err error) {
	if w.Share, w.Domains, err = flat(prepared, share); err == nil {
		w.Squares, _, err = flat(prepared, squares)
	}
	return err
}

// flat writes sums over the values of indices as sums over those of the network's variables, one after the other.
func flat(prepared *truncated.Prepared, of [][]float64) (all []float64, domains []int, err error) {
	total := 0.0
	for _, x := range of[0] {
		total += x
	}
	shares := make([][]float64, len(of))
	for i, row := range of {
		shares[i] = make([]float64, len(row))
		for a, x := range row {
			shares[i][a] = x / total
		}
	}
	rows, err := prepared.Rows(shares)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		for _, p := range row {
			all = append(all, p*total)
		}
		domains = append(domains, len(row))
	}
	return all, domains, nil
}
