package families

// Truths of models from their definition: transfer matrices, in logarithms. Nothing here is the system's.

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// truth is ln Z in nats and the marginals of a model.
type truth func(ctx context.Context, m *factorgraph.Model) (lnZ float64, marginals [][]float64, err error)

// direct is the maximum bits of a key for merging states by an array; beyond, a map is used.
const direct = 24

// column is a step of a sweep: the states in which a variable has just been given its value. States of weight 0 are left out.
type column struct {
	variable int
	ln       []float64 // weight of everything up to here
	parent   []int32   // the state of the column before, after its merging
	into     []int32   // the state after merging
	value    []uint8
	merged   []float64 // ln weights after merging
}

// sweep is the transfer-matrix method: variables enter one after the other, factors are multiplied in with their last variable, variables
// whose factors are all there are summed out. Marginals are from the way back.
func sweep(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	return sweepWithin(ctx, m, 1<<26)
}

// sweepWithin refuses more than so many states of all columns.
func sweepWithin(ctx context.Context, m *factorgraph.Model, most int) (float64, [][]float64, error) {
	s := newSweeper(m)
	var columns []column
	keys, ln, total := []uint64{0}, []float64{0}, 0
	for _, v := range s.order() {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		if total += len(keys) * m.Domains[v]; total > most {
			return 0, nil, fault.New(fault.OverBudget, "families: a sweep of more than %d states", most)
		}
		var c column
		c, keys, ln = s.enter(v, keys, ln)
		columns = append(columns, c)
	}
	lnZ := math.Inf(-1)
	if len(ln) == 1 {
		lnZ = ln[0]
	}
	return lnZ, back(columns, m.Domains, lnZ), nil
}

// back walks from the last column to the first, with ln of the weight of all later columns per merged state in after.
func back(columns []column, domains []int, lnZ float64) [][]float64 {
	marginals := make([][]float64, len(domains))
	after := []float64{0}
	for k := len(columns) - 1; k >= 0; k-- {
		c := columns[k]
		p := make([]float64, domains[c.variable])
		before := []float64{0}
		if k > 0 {
			before = columns[k-1].merged
		}
		next := make([]float64, len(before))
		for i := range next {
			next[i] = math.Inf(-1)
		}
		for i, w := range c.ln {
			to := after[c.into[i]]
			p[c.value[i]] += math.Exp(w + to - lnZ)
			at := c.parent[i]
			next[at] = lnAdd(next[at], w-before[at]+to)
		}
		marginals[c.variable], after = p, next
	}
	return marginals
}

// lnAdd is ln(e^a + e^b).
func lnAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// sweeper has the model by variables; open are the variables entered and not yet summed out, in the sequence of their bits in a key.
type sweeper struct {
	domains []int
	scopes  [][]int
	tables  [][]float64 // logarithms
	of      [][]int     // factors of each variable
	missing []int       // variables of each factor that have not entered
	left    []int       // factors of each variable that are not multiplied in
	open    []int
}

func newSweeper(m *factorgraph.Model) *sweeper {
	s := &sweeper{domains: m.Domains, of: make([][]int, len(m.Domains))}
	for k, f := range m.Factors {
		data := f.Table.(*tensor.Dense).Data
		ln := make([]float64, len(data))
		for i, x := range data {
			ln[i] = math.Log(x)
		}
		s.scopes, s.tables = append(s.scopes, f.Scope), append(s.tables, ln)
		for _, v := range f.Scope {
			s.of[v] = append(s.of[v], k)
		}
	}
	s.reset()
	return s
}

func (s *sweeper) reset() {
	s.open, s.left, s.missing = nil, nil, nil
	for _, list := range s.of {
		s.left = append(s.left, len(list))
	}
	for _, scope := range s.scopes {
		s.missing = append(s.missing, len(scope))
	}
}

func (s *sweeper) bits(v int) int { return bits.Len(uint(s.domains[v] - 1)) }

// admit makes v open, and returns the factors that it completes.
func (s *sweeper) admit(v int) (complete []int) {
	s.open = append(s.open, v)
	for _, f := range s.of[v] {
		if s.missing[f]--; s.missing[f] == 0 {
			complete = append(complete, f)
			for _, u := range s.scopes[f] {
				s.left[u]--
			}
		}
	}
	return complete
}

// widths are the sizes of the tables of a sequence, summed; infinite where they exceed most.
func (s *sweeper) widths(sequence []int, most float64) (sum float64) {
	s.reset()
	for _, v := range sequence {
		s.admit(v)
		size := 1.0
		for _, u := range s.open {
			size *= float64(s.domains[u])
		}
		if sum += size; sum > most {
			return math.Inf(1)
		}
		s.open = slices.DeleteFunc(s.open, func(u int) bool { return s.left[u] == 0 })
	}
	return sum
}

// order is the best of the variables' own sequence and of greedy ones from some starts.
func (s *sweeper) order() []int {
	best := make([]int, len(s.domains))
	for v := range best {
		best[v] = v
	}
	least := s.widths(best, math.Inf(1))
	for start := 0; start < len(s.domains); start += max(1, len(s.domains)/24) {
		list := s.greedy(start)
		if sum := s.widths(list, least); sum < least {
			best, least = list, sum
		}
	}
	s.reset()
	return best
}

// greedy takes next the variable that leaves the fewest open.
func (s *sweeper) greedy(start int) (list []int) {
	s.reset()
	entered := make([]bool, len(s.domains))
	for next := start; next >= 0; {
		list, entered[next] = append(list, next), true
		s.admit(next)
		s.open = slices.DeleteFunc(s.open, func(u int) bool { return s.left[u] == 0 })
		least := math.Inf(1)
		next = -1
		for v := range s.domains {
			if entered[v] {
				continue
			}
			if grows := s.growth(v); grows < least {
				next, least = v, grows
			}
		}
	}
	return list
}

// growth is the change in the number of open variables when v enters, slightly less for each of its factors begun already.
func (s *sweeper) growth(v int) float64 {
	grows, begun := 1.0, 0.0
	closes := map[int]int{}
	for _, f := range s.of[v] {
		if s.missing[f] < len(s.scopes[f]) {
			begun++
		}
		if s.missing[f] > 1 {
			continue
		}
		for _, u := range s.scopes[f] {
			if closes[u]++; closes[u] == s.left[u] {
				grows--
			}
		}
	}
	return grows - begun/100
}

// reader is a factor with the places of its variables in a key.
type reader struct {
	ln    []float64
	parts []part
}

// part is the contribution of one variable to the index of a table.
type part struct {
	shift  int
	mask   uint64
	stride int
}

func (s *sweeper) reader(f int) reader {
	r, stride := reader{ln: s.tables[f]}, 1
	for k := len(s.scopes[f]) - 1; k >= 0; k-- {
		v, shift := s.scopes[f][k], 0
		for _, u := range s.open {
			if u == v {
				break
			}
			shift += s.bits(u)
		}
		r.parts = append(r.parts, part{shift, 1<<s.bits(v) - 1, stride})
		stride *= s.domains[v]
	}
	return r
}

// enter gives v its values in every state, multiplies factors in, and sums out the variables with all factors in.
func (s *sweeper) enter(v int, keys []uint64, ln []float64) (column, []uint64, []float64) {
	c := column{variable: v}
	shift := 0
	for _, u := range s.open {
		shift += s.bits(u)
	}
	var readers []reader
	for _, f := range s.admit(v) {
		readers = append(readers, s.reader(f))
	}
	room := len(keys) * s.domains[v]
	grown := make([]uint64, 0, room)
	c.ln, c.parent, c.value = make([]float64, 0, room), make([]int32, 0, room), make([]uint8, 0, room)
	for i, key := range keys {
		for x := range s.domains[v] {
			key, w := key|uint64(x)<<shift, ln[i]
			for _, r := range readers {
				at := 0
				for _, p := range r.parts {
					at += int(key>>p.shift&p.mask) * p.stride
				}
				w += r.ln[at]
			}
			if !math.IsInf(w, -1) {
				grown, c.ln = append(grown, key), append(c.ln, w)
				c.parent, c.value = append(c.parent, int32(i)), append(c.value, uint8(x))
			}
		}
	}
	merged := s.merge(&c, grown)
	return c, merged, c.merged
}

// merge sums out the variables with all factors in, and returns the keys of the rest.
func (s *sweeper) merge(c *column, keys []uint64) (merged []uint64) {
	var kept []part // stride is the shift in the merged key
	var rest []int
	shift, to := 0, 0
	for _, u := range s.open {
		if s.left[u] > 0 {
			rest, kept = append(rest, u), append(kept, part{shift, 1<<s.bits(u) - 1, to})
			to += s.bits(u)
		}
		shift += s.bits(u)
	}
	s.open = rest
	find := finder(to)
	c.into = make([]int32, len(keys))
	for i, key := range keys {
		less := uint64(0)
		for _, p := range kept {
			less |= key >> p.shift & p.mask << p.stride
		}
		at := find(less, len(merged))
		if at == len(merged) {
			merged, c.merged = append(merged, less), append(c.merged, math.Inf(-1))
		}
		c.into[i] = int32(at)
		c.merged[at] = lnAdd(c.merged[at], c.ln[i])
	}
	return merged
}

// finder returns the number of a key; a new key gets the number next.
func finder(width int) func(key uint64, next int) int {
	if width <= direct {
		list := make([]int32, 1<<width)
		return func(key uint64, next int) int {
			if list[key] == 0 {
				list[key] = int32(next + 1)
			}
			return int(list[key] - 1)
		}
	}
	list := map[uint64]int{}
	return func(key uint64, next int) int {
		at, ok := list[key]
		if !ok {
			at, list[key] = next, next
		}
		return at
	}
}
