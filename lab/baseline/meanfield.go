package baseline

// Naive mean field.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// MeanFieldOptions steer MeanField. The zero value works.
type MeanFieldOptions struct {
	Starts    int     // seeded starts, the first one uniform; 0: 5
	Sweeps    int     // most sweeps of a start; 0: 1000
	Tolerance float64 // a start ends when a sweep changes no probability by more; 0: 1e-9
	Seed      uint64
}

func (o MeanFieldOptions) withDefaults() MeanFieldOptions {
	if o.Starts == 0 {
		o.Starts = 5
	}
	if o.Sweeps == 0 {
		o.Sweeps = 1000
	}
	if o.Tolerance == 0 {
		o.Tolerance = 1e-9
	}
	return o
}

// forbidden stands for ln 0 while probabilities are looked for: exp(−forbidden) is 0, and sums of it
// are still numbers.
const forbidden = 1e4

// MeanField maximises over fully factorised distributions q the lower bound
//
//	ln Z ≥ ln Scale + Σ_t E_q[ln T_t] + Σ_i H(q_i)
//
// by coordinate ascent, q_i(x) ∝ exp Σ_{t∋i} E_{q∖i}[ln T_t | x], from several starts, and returns
// the best with its q. A start that ends with weight on an entry 0 gives −Inf, which is a bound too.
// Errors: fault.Unsupported for entries below 0; the context's. Cost of a sweep: Σ_t order² ×
// entries.
// Source: Jordan, Ghahramani, Jaakkola, Saul, An introduction to variational methods for graphical
// models, Machine Learning 37 (1999).
func MeanField(ctx context.Context, e *sumproduct.Expression, o MeanFieldOptions) (Result, error) {
	if err := check(e); err != nil {
		return Result{}, err
	}
	o = o.withDefaults()
	f := newField(e)
	best := Result{LnZ: math.Inf(-1)}
	flops := 0.0
	for start := range o.Starts {
		f.begin(start, o.Seed)
		r := Result{}
		for r.Rounds < o.Sweeps && !r.Converged {
			if err := ctx.Err(); err != nil {
				return Result{}, err
			}
			r.Converged = f.sweep() <= o.Tolerance
			r.Rounds++
			flops += f.flops
		}
		if r.LnZ = f.bound(); start == 0 || r.LnZ > best.LnZ {
			r.Marginals = f.copy()
			best = r
		}
	}

	best.Flops = flops
	return best, nil
}

// field is a factorised distribution over the indices of an expression.
type field struct {
	e     *sumproduct.Expression
	ln    [][]float64 // ln of the entries, −forbidden for 0
	at    [][]int     // tables of every index
	q     [][]float64
	flops float64 // of a sweep
	x     []int
}

func newField(e *sumproduct.Expression) *field {
	f := &field{
		e:  e,
		ln: make([][]float64, len(e.Tables)),
		at: make([][]int, len(e.Dims)),
		q:  make([][]float64, len(e.Dims)),
	}
	for t, table := range e.Tables {
		f.ln[t] = make([]float64, len(table.Data))
		for k, v := range table.Data {
			if f.ln[t][k] = -forbidden; v > 0 {
				f.ln[t][k] = math.Log(v)
			}
		}
		for _, i := range table.Scope {
			f.at[i] = append(f.at[i], t)
		}
		f.flops += float64(len(table.Scope)*len(table.Scope)) * float64(len(table.Data))
	}

	for i, d := range e.Dims {
		f.q[i] = make([]float64, d)
	}
	return f
}

// begin sets q: uniform for start 0, random otherwise.
func (f *field) begin(start int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(start)))
	for _, q := range f.q {
		total := 0.0
		for x := range q {
			if q[x] = 1; start > 0 {
				q[x] = rng.ExpFloat64() + 1e-3
			}
			total += q[x]
		}
		for x := range q {
			q[x] /= total
		}
	}
}

// sweep sets every q_i once and returns the largest change of a probability.
func (f *field) sweep() float64 {
	change := 0.0
	for i, q := range f.q {
		ln := make([]float64, len(q))
		for _, t := range f.at[i] {
			f.expect(t, i, ln)
		}
		high, total := math.Inf(-1), 0.0
		for _, l := range ln {
			high = max(high, l)
		}
		for x, l := range ln {
			ln[x] = math.Exp(l - high)
			total += ln[x]
		}
		for x, p := range ln {
			change = max(change, math.Abs(p/total-q[x]))
			q[x] = p / total
		}
	}

	return change
}

// expect adds E[ln T_t | index i has value x] over the other indices to into[x]; where i is −1, E[ln
// T_t] to into[0], with ln 0 = −Inf.
func (f *field) expect(t, i int, into []float64) {
	scope := f.e.Tables[t].Scope
	f.x = append(f.x[:0], make([]int, len(scope))...)
	for cell, l := range f.ln[t] {
		if i < 0 && f.e.Tables[t].Data[cell] == 0 {
			l = math.Inf(-1)
		}
		p, x := 1.0, 0
		for k, j := range scope {
			if j == i {
				x = f.x[k]
			} else {
				p *= f.q[j][f.x[k]]
			}
		}

		if p > 0 {
			into[x] += p * l
		}
		for k := len(scope) - 1; k >= 0; k-- {
			if f.x[k]++; f.x[k] < f.e.Dims[scope[k]] {
				break
			}
			f.x[k] = 0
		}
	}
}

// bound is the value of q.
func (f *field) bound() float64 {
	total := []float64{f.e.Scale.LogAbs()}
	for t := range f.e.Tables {
		f.expect(t, -1, total)
	}
	for _, q := range f.q {
		for _, p := range q {
			if p > 0 {
				total[0] -= p * math.Log(p)
			}
		}
	}
	return total[0]
}

func (f *field) copy() [][]float64 {
	list := make([][]float64, len(f.q))
	for i, q := range f.q {
		list[i] = slices.Clone(q)
	}
	return list
}
