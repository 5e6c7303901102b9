package families

// Truths of planar models without fields: determinants.

import (
	"context"
	"math"
	"math/cmplx"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// steps are the directions on a grid: right, down, left, up.
var steps = [4][2]int{{0, 1}, {1, 0}, {0, -1}, {-1, 0}}

// planar is ln Z of spins without fields on a grid with a boundary (Kac and Ward, 1952):
//
//	Z² = 4^n Π cosh² J · det(1 − A),
//
// where A has, for a step along an edge and the next step, which does not turn back, tanh J of the first edge times e^(iα/2), α being the
// angle between them. There are no marginals. Errors: fault.BadInput for fields and other graphs, and the context's.
func planar(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	s, err := readSpins(m)
	if err != nil {
		return 0, nil, err
	}
	g, err := s.grid()
	if err != nil {
		return 0, nil, err
	}
	if s.hasFields() {
		return 0, nil, fault.New(fault.BadInput, "families: a planar model with fields is no determinant")
	}
	lnZ := s.constant + float64(s.spins)*math.Ln2
	edges := make([][4]float64, s.spins) // tanh J of the edge that a step from a spin takes; 0: none
	for spin := range s.spins {
		for direction, neighbour := range [2]int{spin + 1, spin + g.width} {
			coupling := [2]float64{g.right[spin], g.below[spin]}[direction]
			if coupling != 0 {
				edges[spin][direction], edges[neighbour][direction+2] = math.Tanh(coupling), math.Tanh(coupling)
				lnZ += lnCosh(coupling)
			}
		}
	}

	height := s.spins / g.width
	b := newBand(4*s.spins, 4*g.width+3)
	for spin := range s.spins {
		for direction, step := range steps {
			from := 4*spin + direction
			b.set(from, from, 1)
			row, column := spin/g.width+step[0], spin%g.width+step[1]
			if row < 0 || row >= height || column < 0 || column >= g.width {
				continue
			}
			for turn := -1; turn <= 1; turn++ {
				phase := cmplx.Exp(complex(0, float64(turn)*math.Pi/4))
				b.set(from, 4*(row*g.width+column)+(direction+turn+4)%4, -complex(edges[spin][direction], 0)*phase)
			}
		}
	}
	ln, err := b.lnDeterminant(ctx)
	if err != nil {
		return 0, nil, err
	}
	return lnZ + ln/2, nil, nil
}

// band is a square matrix that is zero further than half from its diagonal. Elimination with exchanges of rows fills half more diagonals
// above it.
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

// lnDeterminant is ln |det|; the band is overwritten. It takes 2·n·half² complex multiplications. Errors: the context's.
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
// There are no marginals. Errors: fault.BadInput for an edge without two such vertices, and the context's.
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
	for edge, e := range ends {
		if len(e) != 2 {
			return 0, nil, fault.New(fault.BadInput, "families: variable %d is at %d vertices of several edges, an edge has two", edge, len(e))
		}
		width = max(width, e[1]-e[0])
	}
	isBlack := func(vertex int) bool { return (vertex/width+vertex%width)%2 == 0 }
	number := make([]int, vertices) // of a vertex among those of its colour
	black, white := 0, 0
	for vertex := range number {
		if isBlack(vertex) {
			number[vertex] = black
			black++
		} else {
			number[vertex] = white
			white++
		}
	}
	if black != white {
		return math.Inf(-1), nil, nil
	}
	kasteleyn, lnZ := newBand(black, width+1), 0.0
	for edge, weight := range weights(m) {
		from, to := ends[edge][0], ends[edge][1]
		x := weight[1] / weight[0]
		if to-from == width && from%width%2 == 1 {
			x = -x
		}
		if !isBlack(from) {
			from, to = to, from
		}
		kasteleyn.set(number[from], number[to], complex(x, 0))
		lnZ += math.Log(weight[0])
	}
	ln, err := kasteleyn.lnDeterminant(ctx)
	if err != nil {
		return 0, nil, err
	}
	return lnZ + ln, nil, nil
}
