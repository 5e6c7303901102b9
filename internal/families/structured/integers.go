package structured

// Integer statistics: their lattice, and the interactions of the tables in it.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/btn"
)

const (
	// mostDenominator bounds the denominator by which a difference refines the lattice of those before it.
	mostDenominator = 4096
	// mostRefined bounds all of these together.
	mostRefined = 1 << 24
	// nearInteger is how far a coordinate in the lattice is from an integer, at most.
	nearInteger = 1e-7
	// mostCoordinate bounds the coordinates of a sum.
	mostCoordinate = 1 << 40
	// refinements are the steps by which the form's entries get the digits of pairs.
	refinements = 4
)

// Integers are statistics whose values are integers, N_k(i, x): the base tensor is
//
//	B(x) = e^c · Π_i e^{u_i(x_i)} · e^{½ S(x)ᵀ G S(x)},   S(x) = Σ_i (N(i, x_i) − mean of N(i, ·))
//
// for a symmetric G of any sign. All numbers are pairs, high and low. The value of Fit.Field and Fit.Ln is not used.
type Integers struct {
	Values   []int64   `msgpack:"values"` // N: statistic by statistic, value by value; 0 for the first value of a variable
	Form     []float64 `msgpack:"form"`   // G: entries high and low, row by row
	Field    []float64 `msgpack:"field"`  // u_i(x), nats
	FieldLow []float64 `msgpack:"low"`
	Ln       []float64 `msgpack:"ln"` // c, high and low
	// Sequence are the variables in the sequence in which they are added.
	Sequence []int `msgpack:"sequence"`
	// States is the number of values of all partial sums in that sequence, Widest that of one of them.
	States float64 `msgpack:"states"`
	Widest float64 `msgpack:"widest"`
}

// statistics is the number of statistics.
func (n *Integers) statistics(values int) int { return len(n.Values) / max(1, values) }

// fits checks integers of a fit.
func (n *Integers) fits(f *Fit) error {
	values := len(f.Field)
	k := n.statistics(values)
	if k == 0 || k > MostStatistics || len(n.Values) != k*values || len(n.Form) != 2*k*k || len(n.Field) != values ||
		len(n.FieldLow) != values || len(n.Ln) != 2 || len(n.Sequence) != len(f.Domains) {
		return btn.Misfit("%d integers, %d numbers of a form, %d fields for %d values", len(n.Values), len(n.Form), len(n.Field), values)
	}
	seen := make([]bool, len(f.Domains))
	for _, v := range n.Sequence {
		if v < 0 || v >= len(seen) || seen[v] {
			return btn.Misfit("variable %d comes twice in a sequence, or is not there", v)
		}
		seen[v] = true
	}
	for _, list := range [][]float64{n.Form, n.FieldLow, n.Ln} {
		for _, x := range list {
			if x-x != 0 {
				return btn.Misfit("a number of a form is %v", x)
			}
		}
	}
	for _, x := range n.Field {
		if math.IsNaN(x) || math.IsInf(x, 1) {
			return btn.Misfit("a field is %v", x)
		}
	}
	if len(f.Rest)+len(f.Leaves) > 0 {
		return btn.Misfit("integers beside %d tables and %d leaves", len(f.Rest), len(f.Leaves))
	}
	if _, err := n.keys(f.Domains); err != nil {
		return err
	}
	return nil
}

// counted is the fit of an approximation whose statistics are integers; nil where they are none, their sums have too many values, or there are
// other tables.
func (m *interactions) counted(ctx context.Context, net *btn.Network, s *spectrum, memory int64) (*Fit, error) {
	if len(m.leaves)+len(m.hard)+len(m.apart) > 0 {
		return nil, nil
	}
	n := m.lattice(s)
	if n == nil {
		return nil, nil
	}
	keys, err := n.keys(m.domains)
	if err != nil {
		return nil, nil
	}
	n.order(m.domains)
	if within, err := n.count(ctx, m.domains, keys); !within || err != nil || n.bytes() > float64(memory) {
		return nil, err
	}
	worst, err := m.refine(ctx, net, n, memory)
	if err != nil || !(worst <= exactError) {
		return nil, err
	}
	return &Fit{Domains: m.domains, Field: m.fields(), Integers: n, LnError: worst}, nil
}

// lattice writes the differences of an approximation's statistics between values of a variable as integers; nil where they are none.
func (m *interactions) lattice(s *spectrum) *Integers {
	k, values := len(s.lambda), len(m.field)
	deltas := make([]float64, values*k) // value by value
	longest := 0.0
	for i, d := range m.domains {
		for a := range d {
			to := deltas[(m.at[i]+a)*k:][:k]
			for c, lambda := range s.lambda {
				for p := range d - 1 {
					to[c] += math.Sqrt(math.Abs(lambda)) * (m.basis[i][p*d+a] - m.basis[i][p*d]) * s.w[c*m.order+m.base[i]+p]
				}
			}
			longest = max(longest, norm(to))
		}
	}
	b := independent(deltas, k)
	if b == nil {
		return nil
	}
	refined := 1.0
	own := make([]float64, k)
	for again := true; again; {
		again = false
		inverse := inverted(b, k)
		if inverse == nil {
			return nil
		}
		for at := 0; at < len(deltas); at += k {
			coordinates(own, deltas[at:at+k], inverse)
			q := denominator(own)
			if q == 1 {
				continue
			}
			if refined *= float64(q); q == 0 || refined > mostRefined {
				return nil
			}
			if b = finer(b, own, q); b == nil {
				return nil
			}
			again = true
			break
		}
	}
	n := &Integers{Values: make([]int64, k*values)}
	inverse := inverted(b, k)
	for x := range values {
		coordinates(own, deltas[x*k:][:k], inverse)
		for c, y := range own {
			n.Values[c*values+x] = int64(math.Round(y))
		}
	}
	return n
}

// independent returns k of the rows, each the one with the largest part orthogonal to those before it; nil where there are fewer.
func independent(rows []float64, k int) []float64 {
	rest := slices.Clone(rows)
	var out []float64
	first := 0.0
	for range k {
		best, most := 0, -1.0
		for at := 0; at < len(rest); at += k {
			if size := norm(rest[at : at+k]); size > most {
				best, most = at, size
			}
		}
		if first = max(first, most); !(most > 1e-6*first) {
			return nil
		}
		out = append(out, rows[best:best+k]...)
		axis := slices.Clone(rest[best : best+k])
		for c := range axis {
			axis[c] /= most
		}
		for at := 0; at < len(rest); at += k {
			dot := 0.0
			for c, y := range axis {
				dot += y * rest[at+c]
			}
			for c, y := range axis {
				rest[at+c] -= dot * y
			}
		}
	}
	return out
}

// inverted returns the inverse of a k × k matrix; nil where it has none.
func inverted(b []float64, k int) []float64 {
	out := make([]float64, k*k)
	for c := range k {
		unit := make([]float64, k)
		unit[c] = 1
		if !linalg.SolveSmall(slices.Clone(b), k, unit) {
			return nil
		}
		for r := range k {
			out[r*k+c] = unit[r]
		}
	}
	return out
}

// coordinates fills to with a row times a matrix.
func coordinates(to, row, matrix []float64) {
	k := len(row)
	for c := range to {
		to[c] = 0
		for r, y := range row {
			to[c] += y * matrix[r*k+c]
		}
	}
}

// denominator is the smallest q for which all q·x are near integers; 0: none is.
func denominator(x []float64) int {
	for q := 1; q <= mostDenominator; q++ {
		near := true
		for _, y := range x {
			y *= float64(q)
			if near = math.Abs(y-math.Round(y)) <= nearInteger*max(1, math.Abs(y)*1e-3); !near {
				break
			}
		}
		if near {
			return q
		}
	}
	return 0
}

// finer returns the basis of the lattice of a basis's rows and one more, of which q times are the integers nearest to q·x in that basis.
func finer(b, x []float64, q int) []float64 {
	k := len(x)
	rows := make([][]int64, k+1)
	for r := range k {
		rows[r] = make([]int64, k)
		rows[r][r] = int64(q)
	}
	for _, y := range x {
		rows[k] = append(rows[k], int64(math.Round(y*float64(q))))
	}
	for c := range k { // Euclid's algorithm, column by column, among the rows from c on
		for {
			least := -1
			for r := c; r <= k; r++ {
				if rows[r][c] != 0 && (least < 0 || abs(rows[r][c]) < abs(rows[least][c])) {
					least = r
				}
			}
			if least < 0 {
				return nil
			}
			rows[c], rows[least] = rows[least], rows[c]
			done := true
			for r := range rows {
				if r == c || r < c && abs(rows[r][c]) < abs(rows[c][c]) {
					continue
				}
				by := rows[r][c] / rows[c][c]
				for l := range k {
					rows[r][l] -= by * rows[c][l]
				}
				done = done && (r < c || rows[r][c] == 0)
			}
			if done {
				break
			}
		}
	}
	out := make([]float64, k*k)
	for r := range k {
		for c := range k {
			for l, y := range rows[r] {
				out[r*k+c] += float64(y) / float64(q) * b[l*k+c]
			}
		}
	}
	return out
}

func abs(x int64) int64 { return max(x, -x) }

// order chooses the sequence in which variables are added: equal ones together, and short ones first, so that partial sums have few values.
func (n *Integers) order(domains []int) {
	values := 0
	place := make([]int, len(domains))
	for v, d := range domains {
		place[v] = values
		values += d
	}
	k := n.statistics(values)
	row := func(v int) (out []int64) {
		for x := place[v]; x < place[v]+domains[v]; x++ {
			for c := range k {
				out = append(out, n.Values[c*values+x])
			}
		}
		sign := int64(1)
		for _, y := range out {
			if y != 0 {
				sign = y / abs(y)
				break
			}
		}
		for c := range out {
			out[c] *= sign
		}
		return out
	}
	rows, length := make([][]int64, len(domains)), make([]int64, len(domains))
	for v := range domains {
		rows[v] = row(v)
		for _, y := range rows[v] {
			length[v] += abs(y)
		}
		n.Sequence = append(n.Sequence, v)
	}
	slices.SortStableFunc(n.Sequence, func(a, b int) int {
		if length[a] != length[b] {
			return int(length[a] - length[b])
		}
		return slices.Compare(rows[a], rows[b])
	})
}

// keys returns the difference that a variable's value makes to the number of a sum, by value: one number for each sum. Errors: misfit for
// sums beyond the range of such numbers.
func (n *Integers) keys(domains []int) ([]int64, error) {
	values := 0
	for _, d := range domains {
		values += d
	}
	k := n.statistics(values)
	out := make([]int64, values)
	stride := 1.0
	for c := range k {
		own, span, at := n.Values[c*values:][:values], 1.0, 0
		for _, d := range domains {
			low, high := own[at], own[at]
			for _, y := range own[at : at+d] {
				low, high = min(low, y), max(high, y)
			}
			if abs(low) > mostCoordinate || abs(high) > mostCoordinate || low == math.MinInt64 {
				return nil, btn.Misfit("an integer of a statistic is %d", low)
			}
			span += float64(high - low)
			at += d
		}
		if span > mostCoordinate {
			return nil, btn.Misfit("statistic %d has %.3g values", c, span)
		}
		for x, y := range own {
			out[x] += y * int64(stride)
		}
		if stride *= span; stride > 1<<61 {
			return nil, btn.Misfit("sums of integers have %.3g values", stride)
		}
	}
	return out, nil
}

// pairTable is the table of two variables, centred, in pairs.
type pairTable struct {
	i, j   int // i < j
	values []floats.Pair
}

// centredPairs reads the tables of a network in pairs: c, the fields, and what is left of each two variables; nil where that takes more
// bytes than memory.
func (m *interactions) centredPairs(ctx context.Context, net *btn.Network, memory int64) (
	list []pairTable, ln floats.Pair, field []floats.Pair, err error,
) {
	entries := 0.0
	variable := legVariables(net)
	for _, core := range net.Cores {
		size := 1.0
		for _, l := range core.Legs {
			size *= float64(net.Dims[l])
		}
		entries += size
	}
	if 64*entries > float64(memory) {
		return nil, ln, nil, nil
	}
	field = make([]floats.Pair, len(m.field))
	place := map[[2]int]int{}
	known, logarithm := 1.0, floats.Pair{}
	for _, core := range net.Cores {
		if err := ctx.Err(); err != nil {
			return nil, ln, nil, err
		}
		t, ok := plainTable(core, variable)
		if !ok {
			return nil, ln, nil, nil
		}
		logs := make([]floats.Pair, len(t.Values))
		for x, y := range t.Values {
			switch {
			case y == 0:
				logs[x].High = math.Inf(-1)
				continue
			case y != known:
				known, logarithm = y, floats.Log(y)
			}
			logs[x] = logarithm
		}
		if len(t.Scope) == 1 {
			at := m.at[t.Scope[0]]
			for a, l := range logs {
				field[at+a] = plus(field[at+a], l)
			}
			continue
		}
		i, j := t.Scope[0], t.Scope[1]
		di, dj := m.domains[i], m.domains[j]
		rows, columns, mean := make([]floats.Pair, di), make([]floats.Pair, dj), floats.Pair{}
		for a := range di {
			for b := range dj {
				l := logs[a*dj+b]
				rows[a], columns[b], mean = rows[a].Plus(l), columns[b].Plus(l), mean.Plus(l)
			}
		}
		mean = mean.Over(float64(di * dj))
		ln = ln.Plus(mean)
		for a := range di {
			rows[a] = rows[a].Over(float64(dj)).Minus(mean)
			field[m.at[i]+a] = plus(field[m.at[i]+a], rows[a])
		}
		for b := range dj {
			columns[b] = columns[b].Over(float64(di)).Minus(mean)
			field[m.at[j]+b] = plus(field[m.at[j]+b], columns[b])
		}
		if j < i {
			i, j = j, i
		}
		of, there := place[[2]int{i, j}]
		if !there {
			of = len(list)
			place[[2]int{i, j}] = of
			list = append(list, pairTable{i: i, j: j, values: make([]floats.Pair, di*dj)})
		}
		for a := range di {
			for b := range dj {
				left := logs[a*dj+b].Minus(mean).Minus(rows[a]).Minus(columns[b])
				at := a*dj + b
				if t.Scope[0] > t.Scope[1] {
					at = b*di + a
				}
				list[of].values[at] = list[of].values[at].Plus(left)
			}
		}
	}
	return list, ln, field, nil
}

// plus is p + q where either may be −Inf.
func plus(p, q floats.Pair) floats.Pair {
	if math.IsInf(p.High, -1) || math.IsInf(q.High, -1) {
		return floats.Pair{High: math.Inf(-1)}
	}
	return p.Plus(q)
}

// refine fits the form of integers to the tables by least squares, in pairs, and fills in the fields. It returns the error of entries of B,
// nats: Σ over the pairs of variables of the largest deviation of a logarithm; +Inf where the tables take too many bytes.
func (m *interactions) refine(ctx context.Context, net *btn.Network, n *Integers, memory int64) (worst float64, err error) {
	list, ln, field, err := m.centredPairs(ctx, net, memory)
	if err != nil || list == nil {
		return math.Inf(1), err
	}
	values := len(m.field)
	k := n.statistics(values)
	centred := make([][]float64, values) // d · (N − mean)
	for i, d := range m.domains {
		for a := range d {
			for c := range k {
				own := n.Values[c*values+m.at[i]:][:d]
				sum := int64(0)
				for _, y := range own {
					sum += y
				}
				centred[m.at[i]+a] = append(centred[m.at[i]+a], float64(int64(d)*own[a]-sum))
			}
		}
	}
	form := make([]floats.Pair, k*k)
	terms := k * (k + 1) / 2
	features := make([]float64, terms)
	normal := make([]float64, terms*terms)
	count := len(m.domains)
	tabled := make([]bool, count*count)
	before := math.Inf(1)
	for round := range refinements + 1 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		right := make([]float64, terms)
		worst = 0
		visit := func(i, j int, table []floats.Pair) {
			di, dj := m.domains[i], m.domains[j]
			most := 0.0
			rows, columns := di, dj
			if di == 2 { // the others are the same, below 0
				rows = 1
			}
			if dj == 2 {
				columns = 1
			}
			for a := range rows {
				left := centred[m.at[i]+a]
				half := make([]floats.Pair, k)
				for c := range k {
					for l, y := range left {
						half[c] = half[c].Plus(form[l*k+c].By(y))
					}
				}
				for b := range columns {
					other := centred[m.at[j]+b]
					by := float64(di * dj)
					sum := floats.Pair{}
					for c, y := range other {
						sum = sum.Plus(half[c].By(y))
					}
					off := sum.Over(-by)
					if table != nil {
						off = off.Plus(table[a*dj+b])
					}
					most = max(most, math.Abs(off.High))
					at := 0
					for p := range k {
						for q := p; q < k; q++ {
							if features[at] = left[p] * other[q] / by; p != q {
								features[at] += left[q] * other[p] / by
							}
							at++
						}
					}
					for p, y := range features {
						right[p] += y * off.High
						if round == 0 {
							for q, z := range features {
								normal[p*terms+q] += y * z
							}
						}
					}
				}
			}
			worst += most
		}
		for _, t := range list {
			visit(t.i, t.j, t.values)
			tabled[t.i*count+t.j] = true
		}
		for i := range count { // pairs without a table have no interaction
			for j := i + 1; j < count; j++ {
				if !tabled[i*count+j] {
					visit(i, j, nil)
				}
			}
		}
		if round == refinements || worst > before/2 {
			break
		}
		before = worst
		step := scaledSolution(normal, right, terms)
		if step == nil {
			return math.Inf(1), nil
		}
		at := 0
		for p := range k {
			for q := p; q < k; q++ {
				form[p*k+q] = form[p*k+q].Plus(floats.Pair{High: step[at]})
				form[q*k+p] = form[p*k+q]
				at++
			}
		}
	}
	n.write(m, centred, form, ln, field)
	return worst, nil
}

// scaledSolution solves normal equations, with the unknowns scaled to a diagonal of ones; nil where they have no solution.
func scaledSolution(normal, right []float64, n int) []float64 {
	a, x := make([]float64, n*n), make([]float64, n)
	for p := range n {
		for q := range n {
			a[p*n+q] = normal[p*n+q] / math.Sqrt(normal[p*n+p]*normal[q*n+q])
		}
		x[p] = right[p] / math.Sqrt(normal[p*n+p])
	}
	f, err := linalg.NewCholesky(a, n)
	if err != nil {
		return nil
	}
	if x, err = f.Solve(x); err != nil {
		return nil
	}
	for p := range x {
		x[p] /= math.Sqrt(normal[p*n+p])
	}
	return x
}

// write fills in the form and the fields: less what completes the square.
func (n *Integers) write(m *interactions, centred [][]float64, form []floats.Pair, ln floats.Pair, field []floats.Pair) {
	k := n.statistics(len(field))
	for i, d := range m.domains {
		for x := m.at[i]; x < m.at[i]+d; x++ {
			square := floats.Pair{}
			for p, y := range centred[x] {
				for q, z := range centred[x] {
					square = square.Plus(form[p*k+q].By(y).By(z))
				}
			}
			own := plus(field[x], square.Over(-2*float64(d*d)))
			if math.IsInf(own.High, -1) {
				own.Low = 0
			}
			n.Field, n.FieldLow = append(n.Field, own.High), append(n.FieldLow, own.Low)
		}
	}
	for _, g := range form {
		n.Form = append(n.Form, g.High, g.Low)
	}
	n.Ln = []float64{ln.High, ln.Low}
}
