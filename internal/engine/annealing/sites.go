package annealing

// Any other model: chains one after the other, each of which knows the entry of every table where it is.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// sites are the tables as logarithms, by index where they are.
type sites struct {
	dims    []int
	tables  []siteTable
	of      [][]place
	entries float64 // looked at in a sweep
	bytes   float64 // of the tables at a β
}

type siteTable struct {
	ln   []float64 // an entry of 0 has the least of the others less hardness
	zero []bool
	most float64 // of ln
}

// place is where an index is in a table.
type place struct{ table, stride int32 }

func newSites(e *sumproduct.Expression) *sites {
	s := &sites{dims: e.Dims, of: make([][]place, len(e.Dims))}
	for t, table := range e.Tables {
		own := siteTable{ln: make([]float64, len(table.Data)), zero: make([]bool, len(table.Data))}
		least := math.Inf(1)
		for k, x := range table.Data {
			if own.zero[k] = x == 0; x > 0 {
				own.ln[k] = math.Log(x)
				least = min(least, own.ln[k])
			}
		}
		for k, zero := range own.zero {
			if zero && !math.IsInf(least, 1) {
				own.ln[k] = least - hardness
			}
		}
		own.most = slices.Max(own.ln)
		s.tables = append(s.tables, own)
		s.bytes += 8 * float64(len(table.Data))
		stride := 1
		for k := len(table.Scope) - 1; k >= 0; k-- {
			i := table.Scope[k]
			s.of[i] = append(s.of[i], place{int32(t), int32(stride)})
			stride *= e.Dims[i]
			s.entries += float64(e.Dims[i])
		}
	}
	return s
}

// flops is what the time of a sweep of one chain is worth: measured on grids of 2 to 10 values.
func (s *sites) flops() float64 { return 15*s.entries + 80*float64(len(s.dims)) }

// walkers are eight chains over sites.
type walkers struct {
	*sites
	beta float64
	hot  [][]float64 // the tables at β
	x    [Group][]uint8
	at   [Group][]int32 // the entry of every table
	r    [Group]*rand.Rand
	p    []float64
}

// anneal carries chains first to first+7 along a path, as that of a lattice.
func (s *sites) anneal(ctx context.Context, p Path, first int64, ln []float64, ends bool) (end []uint8) {
	w := s.begin(p.Seed, uint64(first))
	for k := range p.Rungs {
		if ctx.Err() != nil {
			return nil
		}
		for c := range ln {
			e, dead := w.energy(c)
			if ln[c] += e / float64(p.Rungs); dead && k+1 == p.Rungs {
				ln[c] = math.Inf(-1)
			}
		}
		if k+1 < p.Rungs {
			w.heat(float64(k+1) / float64(p.Rungs))
			for c := range Group {
				w.sweep(c)
			}
		}
	}
	if ends {
		end = make([]uint8, len(s.dims)*Group)
		for c, x := range w.x {
			for i, a := range x {
				end[i*Group+c] = a
			}
		}
	}
	return end
}

// begin returns chains first to first+7 in uniformly random states.
func (s *sites) begin(seed, first uint64) *walkers {
	w := &walkers{sites: s, p: make([]float64, 1<<8), hot: make([][]float64, len(s.tables))}
	for t := range w.hot {
		w.hot[t] = make([]float64, len(s.tables[t].ln))
	}
	for c := range Group {
		w.x[c], w.at[c] = make([]uint8, len(s.dims)), make([]int32, len(s.tables))
		w.r[c] = rand.New(rand.NewPCG(seed, first+uint64(c)))
		for i, d := range s.dims {
			w.x[c][i] = uint8(w.r[c].IntN(d))
			for _, p := range s.of[i] {
				w.at[c][p.table] += p.stride * int32(w.x[c][i])
			}
		}
	}
	return w
}

// heat prepares sweeps at β: tables whose largest entry is 1.
func (w *walkers) heat(beta float64) {
	w.beta = beta
	for t := range w.tables {
		for k, l := range w.tables[t].ln {
			w.hot[t][k] = math.Exp(beta * (l - w.tables[t].most))
		}
	}
}

// sweep takes a heat-bath step at every index of chain c.
func (w *walkers) sweep(c int) {
	x, at, r := w.x[c], w.at[c], w.r[c]
	for i, d := range w.dims {
		if d == 1 {
			continue
		}
		p := w.p[:d]
		for a := range p {
			p[a] = 1
		}
		for _, o := range w.of[i] {
			hot, from := w.hot[o.table], at[o.table]-o.stride*int32(x[i])
			for a := range p {
				p[a] *= hot[from+o.stride*int32(a)]
			}
		}
		sum := 0.0
		for _, v := range p {
			sum += v
		}
		if sum < 0x1p-900 {
			sum = w.small(x, at, i, p)
		}
		left := r.Float64() * sum
		a := 0
		for ; a < d-1; a++ {
			if left -= p[a]; left < 0 {
				break
			}
		}
		if uint8(a) == x[i] {
			continue
		}
		for _, o := range w.of[i] {
			at[o.table] += o.stride * (int32(a) - int32(x[i]))
		}
		x[i] = uint8(a)
	}
}

// small fills in the conditional distribution of index i by logarithms, where products leave the range of float64, and returns its sum.
func (w *walkers) small(x []uint8, at []int32, i int, p []float64) (sum float64) {
	clear(p)
	for _, o := range w.of[i] {
		own := &w.tables[o.table]
		for a := range p {
			p[a] += w.beta * own.ln[at[o.table]+o.stride*(int32(a)-int32(x[i]))]
		}
	}
	top := slices.Max(p)
	for a, l := range p {
		p[a] = math.Exp(l - top)
		sum += p[a]
	}
	return sum
}

// energy is ln of the product of the tables where chain c is, and whether an entry there is 0.
func (w *walkers) energy(c int) (ln float64, dead bool) {
	for t, k := range w.at[c] {
		own := &w.tables[t]
		ln += own.ln[k]
		dead = dead || own.zero[k]
	}
	return ln, dead
}
