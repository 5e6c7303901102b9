package annealing

// Any other model: a chain knows the entry of every table where it is.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// sites are the tables as logarithms, by index where they are.
type sites struct {
	dims    []int
	tables  []siteTable
	of      [][]place
	uniform float64 // Σ ln d_i
}

type siteTable struct {
	ln   []float64 // an entry of 0 has the least of the others
	zero []bool
}

// place is where an index is in a table.
type place struct{ table, stride int32 }

func newSites(e *sumproduct.Expression) *sites {
	s := &sites{dims: e.Dims, of: make([][]place, len(e.Dims))}
	for _, d := range e.Dims {
		s.uniform += math.Log(float64(d))
	}
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
				own.ln[k] = least
			}
		}
		s.tables = append(s.tables, own)
		stride := 1
		for k := len(table.Scope) - 1; k >= 0; k-- {
			i := table.Scope[k]
			s.of[i] = append(s.of[i], place{int32(t), int32(stride)})
			stride *= e.Dims[i]
		}
	}
	return s
}

// siteWalkers are chains over sites: x and at have a row per chain.
type siteWalkers struct {
	*sites
	hot [][]float64 // the tables at β
	x   []uint8
	at  []int32 // the entry of every table
	p   []float64
}

func (s *sites) begin(chains int) walkers {
	w := &siteWalkers{
		sites: s, x: make([]uint8, chains*len(s.dims)), at: make([]int32, chains*len(s.tables)), p: make([]float64, 1<<8),
		hot: make([][]float64, len(s.tables)),
	}
	for t := range w.hot {
		w.hot[t] = make([]float64, len(s.tables[t].ln))
	}
	return w
}

func (w *siteWalkers) row(c int) (x []uint8, at []int32) {
	return w.x[c*len(w.dims) : (c+1)*len(w.dims)], w.at[c*len(w.tables) : (c+1)*len(w.tables)]
}

func (w *siteWalkers) draw(c int, r *rand.Rand) {
	x, at := w.row(c)
	clear(at)
	for i, d := range w.dims {
		x[i] = uint8(r.IntN(d))
		for _, p := range w.of[i] {
			at[p.table] += p.stride * int32(x[i])
		}
	}
}

func (w *siteWalkers) heat(beta float64) {
	for t := range w.tables {
		own := &w.tables[t]
		for k, l := range own.ln {
			if own.zero[k] {
				l -= hardness
			}
			w.hot[t][k] = math.Exp(beta * l)
		}
	}
}

func (w *siteWalkers) sweep(c int, r *rand.Rand) {
	x, at := w.row(c)
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

func (w *siteWalkers) energies(c int) (ln float64, zeros int) {
	_, at := w.row(c)
	ln = w.uniform
	for t, k := range at {
		own := &w.tables[t]
		ln += own.ln[k]
		if own.zero[k] {
			zeros++
		}
	}
	return ln, zeros
}

func (w *siteWalkers) copies(to, from int) {
	x, at := w.row(from)
	toX, toAt := w.row(to)
	copy(toX, x)
	copy(toAt, at)
}

func (w *siteWalkers) value(c, i int) int { return int(w.x[c*len(w.dims)+i]) }
