package structured

// Nearly structured networks: chains from the low-rank part, whose draws are exact and whose Z̃ is known, to the network.
//
//	Z = Z̃ · E Π_t (B/B̃)^{β_{t+1} − β_t}(x_t),   x_0 ~ B̃ L / Z̃,   x_t after a sweep that keeps B̃^{1−β_t} B^{β_t} L
//
// The mean is unbiased for any number of rungs (Neal, Annealed importance sampling); with one, the relative variance of a weight is
// Σ_x L (B/Z − B̃/Z̃)² / (B̃/Z̃), the residual of the fit in the norm that the environment gives.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

const drawBlock = 16 // chains that a goroutine takes at a time

// Path is how chains go from a fit to the network.
type Path struct {
	Fit   *Fit `msgpack:"fit"`
	Rungs int  `msgpack:"rungs"`
}

// Fits checks a path against a network.
func (p *Path) Fits(n *btn.Network) error {
	if p.Rungs < 1 || p.Rungs > 1<<24 {
		return btn.Misfit("%d rungs", p.Rungs)
	}
	if p.Fit != nil && len(p.Fit.Leaves) > 0 {
		return btn.Misfit("chains from a fit with %d leaves", len(p.Fit.Leaves))
	}
	for _, lambda := range p.Fit.lambda() {
		if !(lambda > 0) {
			return btn.Misfit("a statistic with λ = %v cannot be drawn from", lambda)
		}
	}
	return (&Nodes{Of: p.Fit, To: WholeShare}).Fits(n)
}

func (f *Fit) lambda() []float64 {
	if f == nil {
		return nil
	}
	return f.Lambda
}

// chains are a fit under the evidence with the residual of the network.
type chains struct {
	*evaluator
	list     []node
	m        *interactions
	residual []float64 // of the matrix, blocks of single variables 0
	upTo     []float64 // sums of the nodes' weights
	lnZ      float64   // ln of Z̃ without the network's scale
	most     float64   // ln of an upper bound of all weights
	tables   [][]int   // of the rest, by variable
	rungs    int
}

// chainsSlot is the place of chains among the forms of a problem.
type chainsSlot struct{}

// chainsOf returns the chains of a problem along a path.
func chainsOf(ctx context.Context, p *problem.Problem, path *Path) (*chains, error) {
	return problem.Form(ctx, p, chainsSlot{}, path, func() (*chains, error) {
		m, err := read(ctx, p.Net, p.Memory, false)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return nil, fault.New(fault.Internal, "structured: the network has no tables of pairs")
		}
		c, err := m.chains(ctx, p.Net, path)
		if err == nil && !c.zero {
			c.most = c.lnZ + m.beyond(c.residual)
		}
		return c, err
	})
}

// cumulated returns the sums of the weights of the nodes up to each, in units of the largest, e^most.
func (e *evaluator) cumulated(ctx context.Context, run *elimination[plain], list []node) (upTo []float64, most float64, err error) {
	upTo, most = make([]float64, len(list)), math.Inf(-1)
	for k, at := range list {
		if k%256 == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		upTo[k] = e.real(at, run) + e.lnWeight(at)
		z, exp := run.total()
		upTo[k] += math.Log(float64(z)) + float64(exp)*math.Ln2
		most = max(most, upTo[k])
	}
	total := 0.0
	for k, ln := range upTo {
		if !math.IsInf(most, -1) {
			total += math.Exp(ln - most)
		}
		upTo[k] = total
	}
	return upTo, most, nil
}

// chains prepares chains: the nodes of the fit, each with its weight. Cost O(nodes · Σd + K · (Σ(d−1))²).
func (m *interactions) chains(ctx context.Context, net *btn.Network, path *Path) (*chains, error) {
	weights, err := weightsOf(net)
	if err != nil {
		return nil, err
	}
	e, err := newEvaluator(path.Fit, weights)
	if err != nil {
		return nil, err
	}
	c := &chains{evaluator: e, m: m, lnZ: math.Inf(-1), rungs: path.Rungs}
	if e.zero {
		return c, nil
	}
	if c.list, err = e.allNodes(ctx, planWork); err != nil {
		return nil, err
	}
	most := 0.0
	if c.upTo, most, err = e.cumulated(ctx, newElimination[plain](e.program, e.fit, e.at, false), c.list); err != nil {
		return nil, err
	}
	if n := len(c.upTo); n > 0 && c.upTo[n-1] > 0 {
		c.lnZ = most + math.Log(c.upTo[n-1]) + path.Fit.Ln
	}
	c.residual = m.rest(path.Fit)
	c.tables = make([][]int, len(m.domains))
	for t, table := range path.Fit.Rest {
		for _, v := range table.Scope {
			c.tables[v] = append(c.tables[v], t)
		}
	}
	return c, nil
}

// rest is the matrix less the low-rank part of a fit, blocks of single variables 0.
func (m *interactions) rest(f *Fit) []float64 {
	out := slices.Clone(m.matrix)
	values := len(m.field)
	for k, lambda := range f.Lambda {
		w := make([]float64, m.order)
		for i, d := range m.domains {
			for p := range d - 1 {
				for a := range d {
					w[m.base[i]+p] += m.basis[i][p*d+a] * f.Vectors[k*values+m.at[i]+a]
				}
			}
		}
		for r, x := range w {
			row := out[r*m.order:][:m.order]
			for c, y := range w {
				row[c] -= lambda * x * y
			}
		}
	}
	for i, d := range m.domains {
		for r := m.base[i]; r < m.base[i]+d-1; r++ {
			clear(out[r*m.order+m.base[i]:][:d-1])
		}
	}
	return out
}

// flops are those of a chain.
func (c *chains) flops() float64 {
	n, values := float64(len(c.m.domains)), float64(len(c.field))
	sweep := values*(26+4*float64(len(c.axes))) + 0.7*n*float64(c.m.order)
	return 30*values + 3*float64(c.program.entries) + 2*n*float64(c.m.order) + float64(c.rungs)*sweep
}

// Weights are those of some chains.
type Weights struct {
	Ln []float64 // ln w of every chain, nats: their mean is Z without the network's scale
	// Most is ln of an upper bound of all weights, and so of Z, nats; infinite where there is none.
	Most float64
	// Top is the largest of Ln; Share is Σ e^{Ln−Top} over the chains that end with a variable at a value, by value, Squares the same with
	// e^{2(Ln−Top)}; nil where marginals were not asked for.
	Top            float64
	Share, Squares []float64
}

// Draw weighs the chains from ≤ c < to of a problem. The same arguments give the same bits for any number of threads. Errors: internal
// for a network of another kind; over budget; the context's.
func Draw(ctx context.Context, p *problem.Problem, path *Path, seed uint64, from, to int64, marginals bool) (*Weights, float64, error) {
	c, err := chainsOf(ctx, p, path)
	if err != nil {
		return nil, 0, err
	}
	w, err := c.draw(ctx, seed, from, to, p.Threads, marginals)
	return w, c.flops() * float64(to-from), err
}

func (c *chains) draw(ctx context.Context, seed uint64, from, to int64, threads int, marginals bool) (*Weights, error) {
	w := &Weights{Ln: make([]float64, to-from), Top: math.Inf(-1), Most: c.most}
	ends := make([][]int, len(w.Ln))
	blocks := (len(w.Ln) + drawBlock - 1) / drawBlock
	workers := make([]*walker, max(1, sumproduct.Threads(threads)))
	err := sumproduct.Share(ctx, len(workers), blocks, func(own, b int) error {
		if workers[own] == nil {
			workers[own] = c.walker()
		}
		for k := b * drawBlock; k < min((b+1)*drawBlock, len(w.Ln)); k++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			w.Ln[k] = workers[own].chain(ctx, rand.New(rand.NewPCG(seed, uint64(from)+uint64(k))))
			if marginals {
				ends[k] = slices.Clone(workers[own].x)
			}
		}
		return nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	w.Top = slices.Max(w.Ln)
	if !marginals || math.IsInf(w.Top, -1) {
		return w, nil
	}
	w.Share, w.Squares = make([]float64, len(c.field)), make([]float64, len(c.field))
	for k, l := range w.Ln {
		e := math.Exp(l - w.Top)
		for v, x := range ends[k] {
			w.Share[c.at[v]+x] += e
			w.Squares[c.at[v]+x] += e * e
		}
	}
	return w, nil
}

// walker carries one chain after the other.
type walker struct {
	*chains
	run  *elimination[plain]
	x    []int
	s    []float64 // of the statistics
	f    []float64 // residual · coordinates of x
	row  []float64 // ln of conditional weights
	last int       // node of run
}

func (c *chains) walker() *walker {
	n := len(c.m.domains)
	return &walker{
		chains: c, run: newElimination[plain](c.program, c.fit, c.at, false), last: -1,
		x: make([]int, n), s: make([]float64, len(c.axes)), f: make([]float64, c.m.order), row: make([]float64, mostDomain),
	}
}

// chain carries a chain and returns ln of its weight.
func (w *walker) chain(ctx context.Context, r *rand.Rand) float64 {
	if math.IsInf(w.lnZ, -1) {
		return w.lnZ
	}
	at := min(sort.SearchFloat64s(w.upTo, r.Float64()*w.upTo[len(w.upTo)-1]), len(w.list)-1)
	if at != w.last {
		w.real(w.list[at], w.run)
		if len(w.program.cliques) > 0 {
			w.run.total()
		}
		w.last = at
	}
	w.run.draw(r, w.x)
	clear(w.s)
	clear(w.f)
	values := len(w.field)
	for v, x := range w.x {
		for k := range w.s {
			w.s[k] += w.fit.Vectors[k*values+w.at[v]+x]
		}
		w.move(v, -1, x)
	}
	ln := w.lnZ
	for t := 1; ; t++ {
		ln += w.deviation() / float64(w.rungs)
		if t == w.rungs || ctx.Err() != nil {
			return ln
		}
		w.sweep(r, float64(t)/float64(w.rungs))
	}
}

// move adds the change of a variable's value to the residual's fields; from −1: it had none.
func (w *walker) move(v, from, to int) {
	d, n := w.m.domains[v], w.m.order
	for p := range d - 1 {
		x := w.m.basis[v][p*d+to]
		if from >= 0 {
			x -= w.m.basis[v][p*d+from]
		}
		if x == 0 {
			continue
		}
		row := w.residual[(w.m.base[v]+p)*n:][:n]
		f := w.f[:n]
		for c, y := range row {
			f[c] += x * y
		}
	}
}

// deviation is ln B − ln B̃ at the state.
func (w *walker) deviation() (ln float64) {
	for v, x := range w.x {
		d := w.m.domains[v]
		for p := range d - 1 {
			ln += w.m.basis[v][p*d+x] * w.f[w.m.base[v]+p]
		}
	}
	return ln / 2
}

// sweep draws every variable given all others, by B̃^{1−β} B^β L.
func (w *walker) sweep(r *rand.Rand, beta float64) {
	values := len(w.field)
	for v, old := range w.x {
		d := w.m.domains[v]
		row := w.row[:d]
		copy(row, w.field[w.at[v]:])
		for k := range w.s {
			vectors := w.fit.Vectors[k*values+w.at[v]:][:d]
			s := w.s[k] - vectors[old]
			half := w.fit.Lambda[k] / 2
			for a, y := range vectors {
				row[a] += half * (s + y) * (s + y)
			}
		}
		for p := range d - 1 {
			f := beta * w.f[w.m.base[v]+p]
			for a, h := range w.m.basis[v][p*d:][:d] {
				row[a] += h * f
			}
		}
		for _, t := range w.tables[v] {
			w.given(t, v, row)
		}
		to := choose(r, row)
		if to == old {
			continue
		}
		w.x[v] = to
		for k := range w.s {
			vectors := w.fit.Vectors[k*values+w.at[v]:]
			w.s[k] += vectors[to] - vectors[old]
		}
		w.move(v, old, to)
	}
}

// given adds ln of a table's entries by the values of one variable, all others as they are.
func (w *walker) given(t, v int, row []float64) {
	table := &w.fit.Rest[t]
	at, stride, step := 0, 1, 0
	for k := len(table.Scope) - 1; k >= 0; k-- {
		if u := table.Scope[k]; u == v {
			step = stride
		} else {
			at += stride * w.x[u]
		}
		stride *= w.m.domains[table.Scope[k]]
	}
	for a := range row {
		row[a] += math.Log(table.Values[at+a*step])
	}
}

// choose draws an index by e^row, which it overwrites.
func choose(r *rand.Rand, row []float64) int {
	if len(row) == 2 {
		if r.Float64()*(1+math.Exp(row[1]-row[0])) < 1 {
			return 0
		}
		return 1
	}
	most := slices.Max(row)
	total := 0.0
	for a, l := range row {
		row[a] = math.Exp(l - most)
		total += row[a]
	}
	u := r.Float64() * total
	for a, x := range row {
		if u -= x; u < 0 && x > 0 {
			return a
		}
	}
	return slices.Index(row, slices.Max(row))
}
