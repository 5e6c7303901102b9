package families

// Truths of planar models without fields: determinants.

import (
	"context"
	"math"
	"math/cmplx"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// steps are the directions on a grid: right, down, left, up.
var steps = [4][2]int{{0, 1}, {1, 0}, {0, -1}, {-1, 0}}

// planar is ln Z of spins without fields on a grid with a boundary (Kac and Ward, 1952):
//
//	Z² = 4^n Π cosh² J · det(1 − A),
//
// where A has, for a step along an edge and the next step, which does not turn back, tanh J of the first edge times e^(iα/2), α being the
// angle between them. There are no marginals.
func planar(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	s, err := readSpins(m)
	if err != nil {
		return 0, nil, err
	}
	width := s.columns()
	height := s.spins / width
	lnZ := s.constant + float64(s.spins)*math.Ln2
	tanh := make([][4]float64, s.spins) // of the edge that a step from a spin takes; 0: none
	for _, p := range s.products {
		direction := 0
		if p.scope[1]-p.scope[0] == width {
			direction = 1
		}
		t := math.Tanh(p.coupling)
		tanh[p.scope[0]][direction], tanh[p.scope[1]][direction+2] = t, t
		lnZ += lnCosh(p.coupling)
	}

	b := newBand(4*s.spins, 4*width+3)
	for spin := range s.spins {
		for direction, step := range steps {
			from := 4*spin + direction
			b.set(from, from, 1)
			row, column := spin/width+step[0], spin%width+step[1]
			if row < 0 || row >= height || column < 0 || column >= width {
				continue
			}
			for turn := -1; turn <= 1; turn++ {
				phase := cmplx.Exp(complex(0, float64(turn)*math.Pi/4))
				b.set(from, 4*(row*width+column)+(direction+turn+4)%4, -complex(tanh[spin][direction], 0)*phase)
			}
		}
	}
	ln, err := b.lnDeterminant(ctx)
	return lnZ + ln/2, nil, err
}

// band is a square matrix that is zero further than so far from its diagonal. Elimination with exchanges of rows fills as many diagonals
// above again.
type band struct {
	half int
	rows [][]complex128 // row i has the columns from i − half to i + 2·half
}

// newBand returns a band of zeros. It takes 48·n·half bytes.
func newBand(n, half int) *band {
	b := &band{half: half, rows: make([][]complex128, n)}
	for i := range b.rows {
		b.rows[i] = make([]complex128, 3*half+1)
	}
	return b
}

func (b *band) set(i, j int, x complex128) { b.rows[i][j-i+b.half] = x }

// lnDeterminant is ln |det|; the band is overwritten. It takes 4·n·half² multiplications. Errors: the context's.
func (b *band) lnDeterminant(ctx context.Context) (ln float64, err error) {
	n := len(b.rows)
	for k := range n {
		if k%256 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		last, end := min(n-1, k+b.half), min(n, k+2*b.half+1)
		pivot := k
		for i := k + 1; i <= last; i++ {
			if cmplx.Abs(b.rows[i][k-i+b.half]) > cmplx.Abs(b.rows[pivot][k-pivot+b.half]) {
				pivot = i
			}
		}
		// rows begin at their own first column, so an exchange moves numbers
		upper, lower := b.rows[k][b.half:b.half+end-k], b.rows[pivot][k-pivot+b.half:k-pivot+b.half+end-k]
		if pivot != k {
			for j := range upper {
				upper[j], lower[j] = lower[j], upper[j]
			}
		}
		ln += math.Log(cmplx.Abs(upper[0]))
		for i := k + 1; i <= last; i++ {
			row := b.rows[i][k-i+b.half : k-i+b.half+end-k]
			if row[0] == 0 {
				continue
			}
			factor := row[0] / upper[0]
			for j, x := range upper {
				row[j] -= factor * x
			}
		}
	}
	return ln, nil
}

// dominoes is ln Z of coverings of a grid by dimers, a variable for each edge and a factor for each vertex, row by row: Z = |det K|,
// K having the weights of edges from black to white vertices, those of every second column of vertical edges negative (Kasteleyn, 1961).
// There are no marginals. Errors: the context's.
func dominoes(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	ends, vertices := make([][]int, len(m.Domains)), 0
	for _, f := range m.Factors {
		if len(f.Scope) == 1 {
			continue
		}
		for _, v := range f.Scope {
			ends[v] = append(ends[v], vertices)
		}
		vertices++
	}
	width := 1
	for _, e := range ends {
		width = max(width, e[1]-e[0])
	}
	number, black, white := make([]int, vertices), 0, 0 // of a vertex among those of its colour
	isBlack := func(vertex int) bool { return (vertex/width+vertex%width)%2 == 0 }
	for v := range number {
		if isBlack(v) {
			number[v] = black
			black++
		} else {
			number[v] = white
			white++
		}
	}
	if black != white {
		return math.Inf(-1), nil, nil
	}
	k, lnZ := newBand(black, width+1), 0.0
	for v, weight := range weights(m) {
		from, to := ends[v][0], ends[v][1]
		x := weight[1] / weight[0]
		if to-from == width && from%width%2 == 1 {
			x = -x
		}
		if !isBlack(from) {
			from, to = to, from
		}
		k.set(number[from], number[to], complex(x, 0))
		lnZ += math.Log(weight[0])
	}
	ln, err := k.lnDeterminant(ctx)
	return lnZ + ln, nil, err
}
