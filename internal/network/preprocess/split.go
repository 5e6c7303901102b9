package preprocess

// Tables that are products of smaller tables.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// rounding bounds the relative difference of an entry from the product it is compared with: a
// few roundings, so that a thousand splits cannot be seen in Z.
const rounding = 4 * 0x1p-52

// split writes table n as a product of tables over fewer indices, if it is one.
func (w *work) split(n int) {
	t := w.tables[n]
	if t.gone {
		return
	}
	for k := range t.scope {
		if w.factorOut(n, k) {
			return
		}
	}
	if w.options.NoStructure {
		return
	}
	for a := range t.scope {
		for b := a + 1; b < len(t.scope); b++ {
			if w.splitPair(n, a, b) {
				return
			}
		}
	}
}

// rounds is rounding in units of 2^-53: a factorisation's contribution to the error of the entries.
const rounds = rounding * 0x1p53

// factorised is the error of a table's factors. Powers of two have quotients
// that are not rounded.
func (t *table) factorised(pieces int) float64 {
	if t.err == 0 && plain(t.data) {
		return 0
	}
	return (t.err + rounds*float64(pieces)) / float64(pieces)
}

// equals reports whether an entry agrees with its factorisation, the product of a and b. A zero is
// one exactly, and no product that is tiny is compared: it has lost digits, or is 0 and should not
// be.
func equals(entry, a, b float64) bool {
	if a == 0 || b == 0 {
		return entry == 0
	}
	p := float64(a * b)
	return math.Abs(entry-p) <= rounding*math.Abs(entry) &&
		(math.Abs(p) >= tiny || entry == p && (a == 1 || b == 1))
}

// factorOut writes table n as u(x)·T'(rest), x being its mode k. A constant u is the result of
// summing a conditional probability over its child; x is then in one table less. It says
// whether anything has changed.
func (w *work) factorOut(n, k int) bool {
	t := w.tables[n]
	d := w.dims[t.scope[k]]
	inner := 1
	for _, i := range t.scope[k+1:] {
		inner *= w.dims[i]
	}

	pivot := largest(t.data)
	if t.data[pivot] == 0 {
		return false
	}

	// A slice through the largest entry, and the ratios of the others to it.
	slice := pivot / inner % d
	at := func(x int) int { return pivot + (x-slice)*inner }
	u := make([]float64, d)
	constant := true
	for x := range u {
		u[x] = t.data[at(x)] / t.data[pivot]
		constant = constant && equals(1, u[x], 1)
	}

	if len(t.scope) == 1 && !constant {
		return false
	}

	// Every entry has to be u(x) times the slice's.
	same := t.err == 0 // for all x, and not within rounding
	for o := 0; o < len(t.data); o += d * inner {
		for i := range inner {
			r := t.data[o+slice*inner+i]
			for x, f := range u {
				if !equals(t.data[o+x*inner+i], f, r) {
					return false
				}
				same = same && t.data[o+x*inner+i] == r
			}
		}
	}
	if constant && w.signed && !same { // u stays, with its error: terms of both signs may cancel without it
		if constant = false; len(t.scope) == 1 {
			return false
		}
	}

	rest := make([]float64, 0, len(t.data)/d)
	for o := 0; o < len(t.data); o += d * inner {
		rest = append(rest, t.data[o+slice*inner:][:inner]...)
	}

	i := t.scope[k]
	t.err = t.factorised(1)
	t.scope = slices.Delete(slices.Clone(t.scope), k, k+1)

	t.data, t.owned = rest, true
	w.leave(n, i)
	if constant {
		w.report.ConstantModes++
	} else {
		w.report.Splits++
		w.add(&table{scope: []int{i}, data: u, owned: true, from: t.from, err: min(t.err, 1)})
	}

	w.changed(n)
	return true
}

// largest returns the place of the first entry of the largest absolute value.
func largest(data []float64) int {
	best := 0
	for k, x := range data {
		if math.Abs(x) > math.Abs(data[best]) {
			best = k
		}
	}
	return best
}

// splitPair writes table n as A(x, rest)·B(y, rest), x and y being its modes a < b, when for every
// value of the rest its x × y matrix has rank one, and that is no larger. It says whether anything
// has changed.
func (w *work) splitPair(n, a, b int) bool {
	t := w.tables[n]
	x, y := t.scope[a], t.scope[b]
	dx, dy := w.dims[x], w.dims[y]
	if len(t.scope) < 3 || dx+dy > dx*dy {
		return false
	}

	strides := sumproduct.Along(w.dims, t.scope, t.scope)
	sx := strides[a]
	sy := strides[b]
	var rest []int
	for k, i := range t.scope {
		if k != a && k != b {
			rest = append(rest, i)
		}
	}

	bases := w.positions(t, rest)
	px := make([]int, len(bases))
	py := make([]int, len(bases))
	for r, base := range bases {
		var ok bool
		if px[r], py[r], ok = rankOne(t.data[base:], dx, sx, dy, sy); !ok {
			return false
		}
	}

	left := &table{
		scope: slices.Delete(slices.Clone(t.scope), b, b+1),
		owned: true,
		from:  t.from,
		wider: true,
	}
	right := &table{
		scope: slices.Delete(slices.Clone(t.scope), a, a+1),
		owned: true,
		from:  t.from,
		wider: true,
	}
	left.data = make([]float64, len(t.data)/dy)
	right.data = make([]float64, len(t.data)/dx)
	lx := sumproduct.Along(w.dims, left.scope, t.scope)[a]
	ly := sumproduct.Along(w.dims, right.scope, t.scope)[b]
	lefts := w.positions(left, rest)
	rights := w.positions(right, rest)

	// A is the column through the pivot, B the row through it over the pivot.
	for r, base := range bases {
		pivot := t.data[base+px[r]*sx+py[r]*sy]
		for v := range dx {
			left.data[lefts[r]+v*lx] = t.data[base+v*sx+py[r]*sy]
		}
		for v := range dy {
			row := t.data[base+px[r]*sx+v*sy]
			if row == 0 {
				continue
			}
			q := row / pivot
			if math.Abs(q) < tiny {
				return false
			}
			right.data[rights[r]+v*ly] = q
		}
	}

	left.err = t.factorised(2)
	right.err = left.err
	w.drop(n)
	w.report.Splits++
	w.add(left)
	w.add(right)
	return true
}

// rankOne says whether the dx × dy matrix with these strides is the product
// of a column and a row through its largest entry, whose place it returns.
func rankOne(m []float64, dx, sx, dy, sy int) (px, py int, ok bool) {
	top := 0.0
	for v := range dx {
		for u := range dy {
			if e := math.Abs(m[v*sx+u*sy]); e > top {
				top = e
				px, py = v, u
			}
		}
	}
	if top == 0 {
		return 0, 0, true
	}

	pivot := m[px*sx+py*sy]
	for v := range dx {
		f := m[v*sx+py*sy] / pivot
		for u := range dy {
			if !equals(m[v*sx+u*sy], f, m[px*sx+u*sy]) {
				return 0, 0, false
			}
		}
	}
	return px, py, true
}

// positions lists where in t the values of some of its indices are,
// in row-major order, the others at 0.
func (w *work) positions(t *table, scope []int) []int {
	list := []int{0}
	for k, stride := range sumproduct.Along(w.dims, t.scope, scope) {
		list = sumproduct.Spread(list, w.dims[scope[k]], stride)
	}
	return list
}
