package structured

// The matrix of interactions as low rank plus few pairs of variables.

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/btn"
)

const (
	// mostRounds bounds the rounds of completion at one rank.
	mostRounds = 400
	// mostApart is the number of pairs a variable that may deviate from low rank.
	mostApart = 3
	// exactError is the relative error of entries of B, in nats, up to which a fit is one. Where integers may be found in it, it is one up to
	// the rounding of interactions, which are read again then.
	exactError = 1e-9
	// residualFloor is the rounding of an interaction, relative to the largest.
	residualFloor = 4e-14
	// largeFactor is the multiple of the median interaction above which one is set apart to begin with.
	largeFactor = 4
	// leastSample and mostSample bound the pairs of a variable whose median is its own.
	leastSample, mostSample = 8, 64
	// probeRounds and probeShare are the rounds after which the median residual has to be below a share of the median interaction.
	probeRounds = 8
	probeShare  = 0.5
	// vanishing is the eigenvalue, relative to the largest, below which a direction is dropped.
	vanishing = 1e-6
	// mostRestTable bounds the entries of a table along the elimination of the rest.
	mostRestTable = 1 << 16
	// orderMoves bounds the search for an elimination order of the rest.
	orderMoves = 1 << 16
)

// apartFactors are the multiples of the median residual above which a pair is taken for one of the rest, one search after the
// other; 0: none is.
var apartFactors = [...]float64{0, 24, 8, 4}

// spectrum is Σ_k λ_k w_k w_kᵀ: an approximation of the matrix of interactions.
type spectrum struct {
	lambda []float64
	w      []float64 // column by column, each of the matrix's order
}

// completion is a search for an approximation of one rank.
type completion struct {
	*interactions
	all       [][2]int  // pairs of variables
	residuals []float64 // of each
	apart     map[[2]int]bool
	of        [][]int // the pairs apart, by variable
	off       float64 // Σ of the residuals of all others
	size      float64 // Σ of the interactions of all pairs
	coupled   []int   // the pairs with an interaction
	sample    [][]int // of each variable some of these, if it has several, without strangers
	s         *spectrum
}

// completion begins a search: with set, pairs are apart whose interactions are far above those of their variables, and strangers.
func (m *interactions) completion(all [][2]int, k int, set bool) (c *completion, largest float64) {
	n := len(m.domains)
	c = &completion{interactions: m, all: all, s: m.begin(k), residuals: make([]float64, len(all)), sample: make([][]int, n)}
	for r, p := range all {
		c.residuals[r] = m.residual(&spectrum{}, p)
		c.size += c.residuals[r]
		largest = max(largest, c.residuals[r])
	}
	for r, x := range c.residuals {
		if x > residualFloor*largest {
			c.coupled = append(c.coupled, r)
		}
	}
	strangers := c.strangers()
	known := make([][]int, n)
	for _, r := range c.coupled {
		if !strangers[r] {
			for _, i := range all[r] {
				known[i] = append(known[i], r)
			}
		}
	}
	for i, pairs := range known {
		if len(pairs) >= leastSample {
			for at := i % max(1, len(pairs)/mostSample); at < len(pairs); at += max(1, len(pairs)/mostSample) {
				c.sample[i] = append(c.sample[i], pairs[at])
			}
		}
	}
	if !set {
		c.divide(math.Inf(1))
		return c, largest
	}
	// Of a matrix of rank one, an interaction is the product of its rows' medians over the median.
	rows, _ := c.rows(c.typical())
	typical := median(slices.Clone(rows))
	scaled := slices.Clone(c.residuals)
	for r, p := range all {
		if x := rows[p[0]] * rows[p[1]]; x > 0 {
			c.residuals[r] *= typical * typical / x
		}
		if strangers[r] && len(strangers) <= mostApart*n {
			c.residuals[r] = math.Inf(1)
		}
	}
	c.divide(largeFactor * typical)
	c.residuals = scaled
	return c, largest
}

// strangers returns the coupled pairs that have few neighbours in common: variables of one group, or of a
// dense matrix, have many. Cost O(pairs · n / 64).
func (c *completion) strangers() map[int]bool {
	out := map[int]bool{}
	n := len(c.domains)
	words := (n + 63) / 64
	near, degree := make([]uint64, n*words), make([]int, n)
	for _, r := range c.coupled {
		p := c.all[r]
		near[p[0]*words+p[1]/64] |= 1 << (p[1] % 64)
		near[p[1]*words+p[0]/64] |= 1 << (p[0] % 64)
		degree[p[0]]++
		degree[p[1]]++
	}
	for _, r := range c.coupled {
		p, common := c.all[r], 0
		for at, x := range near[p[0]*words : p[0]*words+words] {
			common += bits.OnesCount64(x & near[p[1]*words+at])
		}
		if 3*common < min(degree[p[0]], degree[p[1]]) {
			out[r] = true
		}
	}
	return out
}

// typical is the median residual of the pairs with an interaction: of some 4,096 of them.
func (c *completion) typical() float64 {
	var some []float64
	for k := 0; k < len(c.coupled); k += max(1, len(c.coupled)/4096) {
		some = append(some, c.residuals[c.coupled[k]])
	}
	return median(some)
}

// rows returns the median residual of the pairs of each variable, the typical one where it has few, and the largest of these.
func (c *completion) rows(typical float64) (rows []float64, worst float64) {
	rows = make([]float64, len(c.sample))
	for i, pairs := range c.sample {
		if rows[i] = typical; len(pairs) > 0 {
			some := make([]float64, len(pairs))
			for at, r := range pairs {
				some[at] = c.residuals[r]
			}
			rows[i] = median(some)
		}
		worst = max(worst, rows[i])
	}
	return rows, worst
}

// divide sets the pairs apart whose residuals are above a limit, and those that have zeros.
func (c *completion) divide(limit float64) {
	c.apart, c.of, c.off = map[[2]int]bool{}, make([][]int, len(c.domains)), 0
	for r, p := range c.all {
		x := c.residuals[r]
		if x > limit || len(c.interactions.apart) > 0 && c.interactions.apart[p] {
			c.apart[p] = true
			c.of[p[0]], c.of[p[1]] = append(c.of[p[0]], p[1]), append(c.of[p[1]], p[0])
		} else {
			c.off += x
		}
	}
}

// step improves the approximation by a round, and computes the residuals.
func (c *completion) step() error {
	if err := c.interactions.step(c.s, c.of); err != nil {
		return err
	}
	c.s.drop()
	for r, p := range c.all {
		c.residuals[r] = c.residual(c.s, p)
	}
	return nil
}

// complete looks for rank k: blocks of one variable are free, and so are those of pairs that are apart. With a factor, pairs that deviate
// are set apart: those with large interactions to begin with, then in each round those with residuals above factor · median. It returns nil
// where the rest is no rounding. off is Σ of the largest residuals of all other pairs, nats.
func (m *interactions) complete(
	ctx context.Context, all [][2]int, k int, factor float64,
) (s *spectrum, apart map[[2]int]bool, off float64, err error) {
	if 2*k > m.order {
		return nil, nil, 0, nil
	}
	set := factor > 0
	c, largest := m.completion(all, k, set)
	floor, size := residualFloor*largest, c.size
	most := mostApart*len(m.domains) + len(m.apart)
	var medians []float64
	sinceBest, best := 0, math.Inf(1)
	for range mostRounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, 0, err
		}
		if c.step() != nil {
			return nil, nil, 0, nil // a matrix without k directions
		}
		typical := c.typical()
		medians = append(medians, typical)
		_, worst := c.rows(typical)
		limit := math.Inf(1)
		if set {
			limit = max(floor, factor*worst)
		}
		c.divide(limit)
		switch {
		case len(c.apart) > most && len(medians) > 12:
			return nil, nil, 0, nil
		case c.off > max(exactError, residualFloor*size) || len(c.apart) > most || set && limit > floor:
		case c.off < 0.5*best || c.off > exactError && c.off < 0.95*best:
			best, sinceBest = c.off, 0
		default:
			if sinceBest++; sinceBest >= 3 {
				return c.s, c.apart, c.off, nil
			}
		}
		if r := len(medians) - 12; r >= 0 && typical > floor && typical > 0.9*medians[r] {
			return nil, nil, 0, nil
		}
	}
	return nil, nil, 0, nil
}

// all lists the pairs of variables, with a table or without.
func (m *interactions) all() (all [][2]int) {
	for i := range m.domains {
		for j := i + 1; j < len(m.domains); j++ {
			all = append(all, [2]int{i, j})
		}
	}
	return all
}

// begin returns k random directions, the same in every call.
func (m *interactions) begin(k int) *spectrum {
	random := rand.New(rand.NewPCG(1, uint64(k)))
	s := &spectrum{lambda: make([]float64, k), w: make([]float64, k*m.order)}
	for i := range s.w {
		s.w[i] = random.NormFloat64()
	}
	return s
}

// step is one of alternating least squares: given the directions, the rows of each variable fit its blocks that are not apart; the new
// directions are these rows, orthonormal, and turned to eigenvectors.
func (m *interactions) step(s *spectrum, apart [][]int) error {
	n, k := m.order, len(s.lambda)
	u := make([]float64, n*k) // row by row
	gram := make([]float64, k*k)
	row := make([]float64, n*k) // the directions, row by row
	work := make([]float64, k*k)
	for c := range k {
		for r, y := range s.w[c*n : c*n+n] {
			row[r*k+c] = y
		}
	}
	addGram(gram, row, k, 1)
	for i, d := range m.domains {
		own := m.base[i]
		for r := own; r < own+d-1; r++ {
			to := u[r*k : r*k+k]
			for j, x := range m.matrix[r*n : r*n+n] {
				if x != 0 {
					for c, y := range row[j*k : j*k+k] {
						to[c] += x * y
					}
				}
			}
			for _, j := range apart[i] {
				for l := m.base[j]; l < m.base[j]+m.domains[j]-1; l++ {
					for c, y := range row[l*k : l*k+k] {
						to[c] -= m.matrix[r*n+l] * y
					}
				}
			}
		}
		if d == 1 {
			continue
		}
		left := slices.Clone(gram)
		addGram(left, row[own*k:(own+d-1)*k], k, -1)
		for _, j := range apart[i] {
			addGram(left, row[m.base[j]*k:(m.base[j]+m.domains[j]-1)*k], k, -1)
		}
		for r := own; r < own+d-1; r++ {
			copy(work, left)
			if !linalg.SolveSmall(work, k, u[r*k:r*k+k]) {
				return btn.ErrPart
			}
		}
	}
	q := make([]float64, k*n)
	for r := range n {
		for c := range k {
			q[c*n+r] = u[r*k+c]
		}
	}
	if !orthonormal(q, n, k) {
		return btn.ErrPart
	}
	// The approximation is u·wᵀ; in the new directions it is (qᵀu)(wᵀq).
	left, right := make([]float64, k*k), make([]float64, k*k)
	for a := range k {
		for b := range k {
			for r := range n {
				left[a*k+b] += q[a*n+r] * u[r*k+b]
				right[a*k+b] += s.w[a*n+r] * q[b*n+r]
			}
		}
	}
	small := make([]float64, k*k)
	for a := range k {
		for b := range k {
			for c := range k {
				small[a*k+b] += (left[a*k+c]*right[c*k+b] + left[b*k+c]*right[c*k+a]) / 2
			}
		}
	}
	values, vectors, err := linalg.SymmetricEigen(small, k)
	if err != nil {
		return err
	}
	copy(s.lambda, values)
	for a := range k {
		w := s.w[a*n : a*n+n]
		clear(w)
		for b := range k {
			f := vectors[b*k+a]
			for i, y := range q[b*n : b*n+n] {
				w[i] += f * y
			}
		}
	}
	return nil
}

// addGram adds sign · Σ rowᵀ row to a k × k matrix.
func addGram(gram, rows []float64, k int, sign float64) {
	for r := 0; r < len(rows); r += k {
		for a, x := range rows[r : r+k] {
			for b, y := range rows[r : r+k] {
				gram[a*k+b] += sign * x * y
			}
		}
	}
}

// orthonormal makes k columns of length n orthonormal; false where one depends on those before it.
func orthonormal(q []float64, n, k int) bool {
	for c := range k {
		own := q[c*n : c*n+n]
		before := norm(own)
		for range 2 {
			for e := range c {
				other := q[e*n : e*n+n]
				dot := 0.0
				for i, y := range other {
					dot += own[i] * y
				}
				for i, y := range other {
					own[i] -= dot * y
				}
			}
		}
		after := norm(own)
		if !(after > 1e-13*before) {
			return false
		}
		for i := range own {
			own[i] /= after
		}
	}
	return true
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// drop forgets directions that vanish: there are fewer.
func (s *spectrum) drop() {
	n, largest := len(s.w)/len(s.lambda), 0.0
	for _, l := range s.lambda {
		largest = max(largest, math.Abs(l))
	}
	kept := 0
	for k, l := range s.lambda {
		if math.Abs(l) > vanishing*largest {
			copy(s.w[kept*n:], s.w[k*n:k*n+n])
			s.lambda[kept] = l
			kept++
		}
	}
	s.lambda, s.w = s.lambda[:kept], s.w[:kept*n]
}

// at is entry (r, c) of the approximation.
func (s *spectrum) at(n, r, c int) (x float64) {
	for k, l := range s.lambda {
		x += l * s.w[k*n+r] * s.w[k*n+c]
	}
	return x
}

// residual is the Frobenius norm of a pair's block of the matrix less the approximation: no entry of its interaction is off by more.
func (m *interactions) residual(s *spectrum, p [2]int) float64 {
	sum := 0.0
	for r := m.base[p[0]]; r < m.base[p[0]]+m.domains[p[0]]-1; r++ {
		for c := m.base[p[1]]; c < m.base[p[1]]+m.domains[p[1]]-1; c++ {
			x := m.matrix[r*m.order+c] - s.at(m.order, r, c)
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// median returns the median of some values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
