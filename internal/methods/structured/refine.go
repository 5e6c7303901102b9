package structured

// The form of integer statistics, fitted to the tables with twice the digits of a float64.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// refinementSteps bounds the steps of fitForm: each takes off what float64 leaves of the one before.
const refinementSteps = 4

// pairLogs is the logarithm of the product of a pair's tables, centred, in twice the digits of float64.
type pairLogs struct {
	i, j   int           // i < j
	values []floats.Pair // the values of j fastest
}

// centredLogs is the logarithm of the product of a network's tables, ln + Σ fields + Σ interactions of pairs, in twice the digits of
// float64. Each row and each column of an interaction adds up to 0.
type centredLogs struct {
	variables *interactions  // only their domains and values are used
	ln        floats.Pair    // constant
	field     []floats.Pair  // by value
	pairs     []pairLogs     // interactions, by pair of variables that has a table
	index     map[[2]int]int // of a pair of variables in pairs
	hasTable  []bool         // by i*n+j for i < j and n variables
}

// readCentredLogs reads the logarithms of a network's tables of one and two variables. The result is nil if they take more bytes than
// memory, or if a core is no plain table.
func (m *interactions) readCentredLogs(ctx context.Context, net *btn.Network, memory int64) (*centredLogs, error) {
	entries := 0.0
	variable := legVariables(net)
	for _, core := range net.Cores {
		size := 1.0
		for _, l := range core.Legs {
			size *= float64(net.Dims[l])
		}
		entries += size
	}
	if 64*entries > float64(memory) { // 16 bytes for a logarithm in two float64, in several copies
		return nil, nil
	}

	c := &centredLogs{
		variables: m, field: make([]floats.Pair, len(m.field)),
		index: map[[2]int]int{}, hasTable: make([]bool, len(m.domains)*len(m.domains)),
	}
	logarithm := lastLogarithm{x: 1} // ln 1 = 0
	for _, core := range net.Cores {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t, ok := plainTable(core, variable)
		if !ok {
			return nil, nil
		}
		logs := make([]floats.Pair, len(t.Values))
		for x, y := range t.Values {
			logs[x] = logarithm.compute(y)
		}
		if len(t.Scope) == 1 {
			c.addToFields(t.Scope[0], logs)
		} else {
			c.addPairTable(t.Scope[0], t.Scope[1], logs)
		}
	}
	return c, nil
}

// addToFields adds logarithms, by value of variable i, to the fields.
func (c *centredLogs) addToFields(i int, logs []floats.Pair) {
	field := c.field[c.variables.firstValue[i]:]
	for a, l := range logs {
		field[a] = sumOrImpossible(field[a], l)
	}
}

// addPairTable adds a table of logarithms of variables i and j, the values of j fastest. Its mean goes to the constant, its row and column
// effects to the fields. What is left, the interaction, is added to the interaction of the pair.
func (c *centredLogs) addPairTable(i, j int, logs []floats.Pair) {
	mean, rows, columns := mainEffects(logs, c.variables.domains[i], c.variables.domains[j])
	c.ln = c.ln.Plus(mean)
	c.addToFields(i, rows)
	c.addToFields(j, columns)

	pair := [2]int{min(i, j), max(i, j)}
	k, ok := c.index[pair]
	if !ok {
		k = len(c.pairs)
		c.index[pair] = k
		c.hasTable[pair[0]*len(c.variables.domains)+pair[1]] = true
		c.pairs = append(c.pairs, pairLogs{i: pair[0], j: pair[1], values: make([]floats.Pair, len(logs))})
	}
	sums := c.pairs[k].values
	for a, row := range rows {
		for b, column := range columns {
			entry := a*len(columns) + b
			interaction := logs[entry].Minus(mean).Minus(row).Minus(column)
			if i > j { // sums has the values of i fastest
				entry = b*len(rows) + a
			}
			sums[entry] = sums[entry].Plus(interaction)
		}
	}
}

// lastLogarithm computes logarithms in twice the digits of float64 and remembers the last one: many entries of a table are equal.
type lastLogarithm struct {
	x  float64
	ln floats.Pair
}

// compute returns ln y for y ≥ 0. It is −Inf for 0. c has the last logarithm, since equal numbers often follow each other.
func (c *lastLogarithm) compute(y float64) floats.Pair {
	if y == 0 {
		return floats.Pair{High: math.Inf(-1)}
	}
	if y != c.x {
		c.x, c.ln = y, floats.Log(y)
	}
	return c.ln
}

// mainEffects returns the mean of a di × dj table of logarithms, and the main effects: the mean of each row, and of each column, less the
// mean of the table. Entry (a, b) is at a*dj+b.
func mainEffects(logs []floats.Pair, di, dj int) (mean floats.Pair, rows, columns []floats.Pair) {
	rows, columns = make([]floats.Pair, di), make([]floats.Pair, dj)
	for a := range di {
		for b := range dj {
			l := logs[a*dj+b]
			rows[a], columns[b], mean = rows[a].Plus(l), columns[b].Plus(l), mean.Plus(l)
		}
	}
	mean = mean.DividedBy(float64(di * dj))
	for a := range di {
		rows[a] = rows[a].DividedBy(float64(dj)).Minus(mean)
	}
	for b := range dj {
		columns[b] = columns[b].DividedBy(float64(di)).Minus(mean)
	}
	return mean, rows, columns
}

// sumOrImpossible returns p + q, or −Inf if one of them is −Inf.
func sumOrImpossible(p, q floats.Pair) floats.Pair {
	if math.IsInf(p.High, -1) || math.IsInf(q.High, -1) {
		return floats.Pair{High: math.Inf(-1)}
	}
	return p.Plus(q)
}

// fitForm fits the form of integer statistics to the tables by least squares, in twice the digits of float64. The form is the symmetric
// matrix G of ln B(x) = constant + Σ fields + ½ S(x)ᵀ G S(x), where B(x) is the product of the tables at state x, and S are the sums of the
// variables' centred integers. It sets G, the constant and the fields of n. It returns a bound of the error of ln B(x), nats: the sum over
// the pairs of variables of the pair's largest deviation. It returns +Inf if the tables take more bytes than memory, or if the fit fails.
func (m *interactions) fitForm(ctx context.Context, net *btn.Network, n *Integers, memory int64) (worst float64, err error) {
	logs, err := m.readCentredLogs(ctx, net, memory)
	if err != nil || logs == nil || logs.pairs == nil { // without a pair there is nothing to fit
		return math.Inf(1), err
	}

	// The unknowns, called terms, are the entries of the symmetric k × k form on and above the diagonal.
	k := n.statisticCount(len(m.field))
	terms := k * (k + 1) / 2
	f := &formFit{
		interactions: m, k: k, centred: m.centredIntegers(n), form: make([]floats.Pair, k*k),
		features: make([]float64, terms), normal: make([]float64, terms*terms),
	}

	// Each round measures the deviations that are left, and adds the solution of their normal equations to the form. The last round only
	// measures. It comes if the worst deviation has fallen by less than a half, or after refinementSteps steps.
	worstBefore := math.Inf(1)
	for round := range refinementSteps + 1 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		f.isFirst = round == 0
		f.measureDeviations(logs)
		if round == refinementSteps || f.worst > worstBefore/2 {
			break
		}
		worstBefore = f.worst

		step := solveNormalEquations(f.normal, f.right, terms)
		if step == nil {
			return math.Inf(1), nil
		}
		f.addToForm(step)
	}
	n.storeFit(m, f.centred, f.form, logs.ln, logs.field)
	return f.worst, nil
}

// measureDeviations sets worst and right, the right side of the normal equations, to those of the deviations that the form leaves. In the
// first round it also makes the matrix of the equations. Pairs without a table deviate from an interaction of 0.
func (f *formFit) measureDeviations(logs *centredLogs) {
	f.right, f.worst = make([]float64, len(f.features)), 0
	for _, t := range logs.pairs {
		f.addPair(t.i, t.j, t.values)
	}
	n := len(f.domains)
	for i := range n {
		for j := i + 1; j < n; j++ {
			if !logs.hasTable[i*n+j] {
				f.addPair(i, j, nil) // nil: no interaction
			}
		}
	}
}

// addToForm adds a step, by term, to the symmetric form.
func (f *formFit) addToForm(step []float64) {
	term := 0
	for p := range f.k {
		for q := p; q < f.k; q++ {
			f.form[p*f.k+q] = f.form[p*f.k+q].Plus(floats.Pair{High: step[term]})
			f.form[q*f.k+p] = f.form[p*f.k+q]
			term++
		}
	}
}

// centredIntegers returns, by value x of a variable of d values and by statistic k, the integer d · (N_k(x) − the mean of N_k over the
// variable's values).
func (m *interactions) centredIntegers(n *Integers) [][]float64 {
	values := len(m.field)
	centred := make([][]float64, values)
	for i, d := range m.domains {
		for a := range d {
			for c := range n.statisticCount(values) {
				integers := n.Values[c*values+m.firstValue[i]:][:d] // of statistic c, by value of variable i
				sum := int64(0)
				for _, y := range integers {
					sum += y
				}
				centred[m.firstValue[i]+a] = append(centred[m.firstValue[i]+a], float64(int64(d)*integers[a]-sum))
			}
		}
	}
	return centred
}

// formFit is a step of least squares for the form G, whose unknowns, the terms, are its entries p ≤ q.
type formFit struct {
	*interactions
	k        int           // statistics
	centred  [][]float64   // centredIntegers
	form     []floats.Pair // G so far
	features []float64     // room for the coefficients of the terms in one entry
	normal   []float64     // matrix of the normal equations, made in the first step
	right    []float64     // their right side, for the deviations that the form leaves
	worst    float64       // Σ over the pairs of the largest deviation, nats
	isFirst  bool          // it is the first step: the matrix is made
}

// addPair adds the deviations of a pair of variables to the normal equations, and the largest deviation to worst. The deviation of entry
// (a, b) is table[a*dj+b] − N(a)ᵀ G N(b) for the centred integers N. table is nil if the pair has no interaction.
func (f *formFit) addPair(i, j int, table []floats.Pair) {
	di, dj := f.domains[i], f.domains[j]
	k := f.k
	largest := 0.0

	// In a centred table of two rows the second one is the negative of the first one. One of them is enough.
	rows, columns := di, dj
	if di == 2 {
		rows = 1
	}
	if dj == 2 {
		columns = 1
	}
	for a := range rows {
		left := f.centred[f.firstValue[i]+a]
		product := make([]floats.Pair, k) // leftᵀ G
		for c := range k {
			for l, y := range left {
				product[c] = product[c].Plus(f.form[l*k+c].TimesFloat(y))
			}
		}
		for b := range columns {
			right := f.centred[f.firstValue[j]+b]
			scale := float64(di * dj) // centred holds di · N(a) and dj · N(b)
			sum := floats.Pair{}
			for c, y := range right {
				sum = sum.Plus(product[c].TimesFloat(y))
			}
			deviation := sum.DividedBy(-scale)
			if table != nil {
				deviation = deviation.Plus(table[a*dj+b])
			}
			largest = max(largest, math.Abs(deviation.High))

			f.setFeatures(left, right, scale) // of this entry, for addDeviation
			f.addDeviation(deviation.High)
		}
	}
	f.worst += largest
}

// setFeatures sets features to the derivatives of leftᵀ G right / scale with respect to the terms, the entries of G on and above the
// diagonal.
func (f *formFit) setFeatures(left, right []float64, scale float64) {
	term := 0
	for p := range f.k {
		for q := p; q < f.k; q++ {
			f.features[term] = left[p] * right[q] / scale
			if p != q {
				f.features[term] += left[q] * right[p] / scale
			}
			term++
		}
	}
}

// addDeviation adds one entry of a table to the normal equations of least squares: features times deviation to the right side, and in the
// first round features times featuresᵀ to the matrix, which later rounds share. features are the entry's derivatives by the terms.
func (f *formFit) addDeviation(deviation float64) {
	terms := len(f.features)
	for p, y := range f.features {
		f.right[p] += y * deviation
		if f.isFirst {
			for q, z := range f.features {
				f.normal[p*terms+q] += y * z
			}
		}
	}
}

// solveNormalEquations solves the n × n normal equations, normal · x = right. It scales the unknowns so that the diagonal is 1. It returns
// nil if there is no solution.
func solveNormalEquations(normal, right []float64, n int) []float64 {
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

// storeFit stores the form G, the constant ln and the fields in n. The field of value x loses ½ N(x)ᵀ G N(x), the square of its own centred
// integers N(x), which is in ½ SᵀGS, too. centred[x] is d · N(x) for a variable of d values.
func (n *Integers) storeFit(m *interactions, centred [][]float64, form []floats.Pair, ln floats.Pair, field []floats.Pair) {
	k := n.statisticCount(len(field))
	for i, d := range m.domains {
		for x := m.firstValue[i]; x < m.firstValue[i]+d; x++ {
			square := floats.Pair{} // d² · NᵀGN
			for p, y := range centred[x] {
				for q, z := range centred[x] {
					square = square.Plus(form[p*k+q].TimesFloat(y).TimesFloat(z))
				}
			}
			stored := sumOrImpossible(field[x], square.DividedBy(-2*float64(d*d))) // −Inf if the field is
			if math.IsInf(stored.High, -1) {
				stored.Low = 0
			}
			n.Field, n.FieldLow = append(n.Field, stored.High), append(n.FieldLow, stored.Low)
		}
	}
	for _, g := range form {
		n.Form = append(n.Form, g.High, g.Low)
	}
	n.Ln = []float64{ln.High, ln.Low}
}
