package annealing

// Models whose indices have two values and whose tables are positive and over two of them at most: every chain keeps the field at
// every spin, which changes where a neighbour flips.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// spins is ln Π T = constant + Σ_i h_i s_i + Σ_{i<j} J_ij s_i s_j over s_i = ±1, −1 for value 0.
type spins struct {
	n        int
	two      []bool // the index has two values
	uniform  float64
	constant float64
	h        []float64
	first    []int32 // of the neighbours of spin i: first[i] to first[i+1]
	to       []int32
	j        []float64
}

// newSpins returns nil for other expressions. Indices of one value are spins that are always −1.
func newSpins(e *sumproduct.Expression) *spins {
	n := len(e.Dims)
	s := &spins{n: n, h: make([]float64, n), two: make([]bool, n)}
	for i, d := range e.Dims {
		s.two[i] = d == 2
		s.uniform += math.Log(float64(d))
	}
	if slices.Max(append([]int{1}, e.Dims...)) > 2 {
		return nil
	}
	coupled := make([]map[int]float64, n)
	for _, t := range e.Tables {
		var ln [4]float64
		var over []int
		for _, i := range t.Scope {
			if e.Dims[i] == 2 {
				over = append(over, i)
			}
		}
		if len(over) > 2 || t.Exp != nil {
			return nil
		}
		for k, x := range t.Data {
			if !(x > 0) {
				return nil
			}
			ln[k] = math.Log(x)
		}
		switch len(over) {
		case 0:
			s.constant += ln[0]
		case 1:
			s.constant += (ln[0] + ln[1]) / 2
			s.h[over[0]] += (ln[1] - ln[0]) / 2
		case 2:
			a, b := over[0], over[1]
			s.constant += (ln[0] + ln[1] + ln[2] + ln[3]) / 4
			s.h[a] += (ln[2] + ln[3] - ln[0] - ln[1]) / 4
			s.h[b] += (ln[1] + ln[3] - ln[0] - ln[2]) / 4
			for _, pair := range [][2]int{{a, b}, {b, a}} {
				if coupled[pair[0]] == nil {
					coupled[pair[0]] = map[int]float64{}
				}
				coupled[pair[0]][pair[1]] += (ln[0] + ln[3] - ln[1] - ln[2]) / 4
			}
		}
	}
	s.first = make([]int32, n+1)
	for i, by := range coupled {
		at := len(s.to)
		for b := range by {
			s.to = append(s.to, int32(b))
		}
		slices.Sort(s.to[at:])
		for _, b := range s.to[at:] {
			s.j = append(s.j, by[int(b)])
		}
		s.first[i+1] = int32(len(s.to))
	}
	return s
}

// spinWalkers are chains over spins: x and field have a row of n per chain.
type spinWalkers struct {
	*spins
	beta     float64
	x, field []float64 // s_i, and h_i + Σ_j J_ij s_j
}

func (s *spins) begin(chains int) walkers {
	return &spinWalkers{spins: s, x: make([]float64, chains*s.n), field: make([]float64, chains*s.n)}
}

func (w *spinWalkers) row(c int) (x, field []float64) {
	return w.x[c*w.n : (c+1)*w.n], w.field[c*w.n : (c+1)*w.n]
}

func (w *spinWalkers) draw(c int, r *rand.Rand) {
	x, field := w.row(c)
	copy(field, w.h)
	for i := range x {
		if x[i] = -1; w.two[i] && r.Uint64()&1 == 1 {
			x[i] = 1
		}
	}
	for i, s := range x {
		for k := w.first[i]; k < w.first[i+1]; k++ {
			field[w.to[k]] += w.j[k] * s
		}
	}
}

func (w *spinWalkers) heat(beta float64) { w.beta = beta }

func (w *spinWalkers) sweep(c int, r *rand.Rand) {
	x, field := w.row(c)
	for i, s := range x {
		if !w.two[i] {
			continue
		}
		up := r.Float64()*(1+math.Exp(-2*w.beta*field[i])) < 1
		if up == (s > 0) {
			continue
		}
		x[i] = -s
		for k := w.first[i]; k < w.first[i+1]; k++ {
			field[w.to[k]] -= 2 * w.j[k] * s
		}
	}
}

func (w *spinWalkers) energies(c int) (ln float64, zeros int) {
	x, field := w.row(c)
	for i, s := range x {
		ln += (w.h[i] + field[i]) * s
	}
	return w.constant + ln/2 + w.uniform, 0
}

func (w *spinWalkers) copies(to, from int) {
	x, field := w.row(from)
	toX, toField := w.row(to)
	copy(toX, x)
	copy(toField, field)
}

func (w *spinWalkers) value(c, i int) int {
	if w.x[c*w.n+i] > 0 {
		return 1
	}
	return 0
}
