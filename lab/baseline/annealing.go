package baseline

// Annealed importance sampling, plain: a page of code.

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// AnnealingOptions configure Annealing.
type AnnealingOptions struct {
	Temperatures int // default 1,000
	Chains       int // default 100
	Seed         uint64
}

// Annealing estimates ln Z by annealed importance sampling (Neal, 2001): every chain begins with a draw from the uniform distribution and
// goes along the tables to the powers 1/T, 2/T … 1, with one sweep of single-site Gibbs steps at each; its weight is the product of the
// ratios on the way, and Z is their mean times the number of states. There is one chain after the other, nothing adapts, and chains are
// never redrawn. Marginals are weighted sums over the last states. The second result is the standard error of ln Z, from the spread of
// the weights; Converged says that it is below 1. Rounds counts single-site steps.
//
// An entry that is 0 forbids its states at every power above 0, so where there are such entries chains may all die: LnZ is −Inf then.
// Errors: fault.Unsupported for entries below 0 and more than 256 values, fault.BadInput for options, and the context's.
func Annealing(ctx context.Context, e *sumproduct.Expression, o AnnealingOptions) (Result, float64, error) {
	if err := check(e); err != nil {
		return Result{}, 0, err
	}
	o.Temperatures = cmp.Or(o.Temperatures, 1000)
	o.Chains = cmp.Or(o.Chains, 100)
	if o.Temperatures < 1 || o.Chains < 2 {
		return Result{}, 0, fault.New(fault.BadInput, "baseline: %d temperatures and %d chains", o.Temperatures, o.Chains)
	}

	states := e.Scale.LogAbs()
	for i, d := range e.Dims {
		if d > 1<<8 {
			return Result{}, 0, fault.New(fault.Unsupported, "baseline: index %d has %d values, at most 256", i, d)
		}
		states += math.Log(float64(d))
	}
	var chain annealed
	if s := newSpins(e); s != nil {
		chain = s
	} else {
		chain = newStates(e)
	}
	lnw := make([]float64, o.Chains)
	last := make([][]uint8, o.Chains)
	for c := range lnw {
		r := rand.NewPCG(o.Seed, uint64(c))
		chain.draw(r)
		for t := range o.Temperatures {
			if ctx.Err() != nil {
				return Result{}, 0, ctx.Err()
			}
			lnw[c] += chain.energy() / float64(o.Temperatures)
			if t+1 < o.Temperatures {
				chain.sweep(r, float64(t+1)/float64(o.Temperatures))
			}
		}
		last[c] = chain.values()
	}

	top := math.Inf(-1)
	for _, l := range lnw {
		top = max(top, l)
	}
	res := Result{LnZ: math.Inf(-1), Rounds: o.Chains * (o.Temperatures - 1) * len(e.Dims)}
	if math.IsInf(top, -1) {
		return res, math.Inf(1), nil
	}
	sum, squares := 0.0, 0.0
	res.Marginals = make([][]float64, len(e.Dims))
	for i, d := range e.Dims {
		res.Marginals[i] = make([]float64, d)
	}
	for c, l := range lnw {
		w := math.Exp(l - top)
		sum += w
		squares += w * w
		for i, x := range last[c] {
			res.Marginals[i][x] += w
		}
	}
	for _, p := range res.Marginals {
		for a := range p {
			p[a] /= sum
		}
	}
	n := float64(o.Chains)
	res.LnZ = states + top + math.Log(sum/n)
	deviation := math.Sqrt(max(0, squares/n-sum*sum/n/n)*n/(n-1)) / math.Sqrt(n) / (sum / n)
	res.Converged = deviation < 1
	return res, deviation, nil
}

// annealed is a chain that walks over an expression.
type annealed interface {
	draw(r *rand.PCG)                // a state at random
	energy() float64                 // ln of the product of the tables there
	sweep(r *rand.PCG, beta float64) // a Gibbs step at every index, of the tables to the power beta
	values() []uint8                 // of the indices, a copy
}

// states is a chain over any expression.
type states struct {
	dims   []int
	tables []logTable
	of     [][]occurrence // by index
	x      []uint8
	p      []float64
}

type logTable struct {
	ln []float64
	at int // the entry of the state
}

type occurrence struct{ table, stride int }

func newStates(e *sumproduct.Expression) *states {
	s := &states{dims: e.Dims, of: make([][]occurrence, len(e.Dims)), x: make([]uint8, len(e.Dims))}
	most := 0
	for _, d := range e.Dims {
		most = max(most, d)
	}
	s.p = make([]float64, most)
	for t, table := range e.Tables {
		ln := make([]float64, len(table.Data))
		for k, v := range table.Data {
			ln[k] = math.Log(v)
		}
		s.tables = append(s.tables, logTable{ln: ln})
		stride := 1
		for k := len(table.Scope) - 1; k >= 0; k-- {
			i := table.Scope[k]
			s.of[i] = append(s.of[i], occurrence{t, stride})
			stride *= e.Dims[i]
		}
	}
	return s
}

func (s *states) put(i int, a uint8) {
	for _, o := range s.of[i] {
		s.tables[o.table].at += o.stride * (int(a) - int(s.x[i]))
	}
	s.x[i] = a
}

func (s *states) draw(r *rand.PCG) {
	numbers := rand.New(r)
	for i, d := range s.dims {
		s.put(i, uint8(numbers.IntN(d)))
	}
}

func (s *states) energy() float64 {
	sum := 0.0
	for t := range s.tables {
		sum += s.tables[t].ln[s.tables[t].at]
	}
	return sum
}

func (s *states) sweep(r *rand.PCG, beta float64) {
	for i, d := range s.dims {
		p := s.p[:d]
		top := math.Inf(-1)
		for a := range p {
			p[a] = 0
			for _, o := range s.of[i] {
				t := &s.tables[o.table]
				p[a] += t.ln[t.at+o.stride*(a-int(s.x[i]))]
			}
			top = max(top, p[a])
		}
		if math.IsInf(top, -1) { // a dead chain stays where it is
			continue
		}
		sum := 0.0
		for a := range p {
			p[a] = math.Exp(beta * (p[a] - top))
			sum += p[a]
		}
		left := unit(r) * sum
		a := 0
		for ; a < d-1; a++ {
			if left -= p[a]; left < 0 {
				break
			}
		}
		s.put(i, uint8(a))
	}
}

func (s *states) values() []uint8 { return append([]uint8(nil), s.x...) }
