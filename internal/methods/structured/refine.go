package structured

// The form of integer statistics, fitted to the tables with twice the digits of a float64.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// refinements are the steps by which the form's entries get the digits of pairs.
const refinements = 4

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
