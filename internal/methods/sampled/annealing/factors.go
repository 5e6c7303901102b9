package annealing

// Any tables: eight chains side by side over indices of any number of values, with vectors and without, with the same bits.

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// factors are tables as the loops see them: differences of a value against value 0, given the others.
type factors struct {
	dims   []int
	tables []logTable
	// height is the number of rows of eight integers that hold chains: the values of the indices, then the entries of the tables
	// over three or more indices.
	height int
	at     []int32 // the row of a table, 0 for those that have none
	sites  []site
	ops    []op
	ln     []float32 // differences of the tables
	own    []float32 // of every index of two or more values, the differences of the tables over it alone, by value from 1 on
	base   []float32 // the same of where chains begin, in powers of 2
	start  [][]float64
	most   int     // values of an index
	work   float64 // flops of a sweep
}

// logTable has the logarithms of a table; an entry of 0 has the least of the others less hardness.
type logTable struct {
	scope []int
	ln    []float64
	zero  []bool
}

// site is an index that takes steps. Its operations follow the previous site's: the ones up to moved are of tables whose rows move
// with it.
type site struct{ row, values, moved, end int32 }

// op adds differences of a table: the entry is selected by row, values are step bytes apart. Eight or sixteen entries are permuted,
// more are gathered.
type op struct{ row, step, table, stride int32 }

// mostDifferences bounds the differences of a model.
const mostDifferences = 1 << 26

func newFactors(e *sumproduct.Expression, start [][]float64) (*factors, error) {
	f := &factors{dims: e.Dims, height: len(e.Dims), at: make([]int32, len(e.Tables)), start: start}
	over := make([][]int32, len(e.Dims)) // tables of every index
	differences := 0.0
	for t, table := range e.Tables {
		f.tables = append(f.tables, newLogTable(table))
		for _, i := range table.Scope {
			over[i] = append(over[i], int32(t))
			differences += float64(e.Dims[i]-1) * float64(len(table.Data))
		}
		if len(table.Scope) > 2 {
			f.at[t] = int32(f.height)
			f.height++
		}
	}
	if differences > mostDifferences {
		return nil, fault.New(fault.Unsupported, "annealing: %.3g differences of tables, at most %d", differences, int64(mostDifferences))
	}
	known := map[string]int32{} // where differences are that several tables have
	for i, d := range e.Dims {
		f.most = max(f.most, d)
		if d == 1 {
			continue
		}
		own := make([]float64, d)
		var moving, fixed []op
		for _, t := range over[i] {
			table := &f.tables[t]
			switch len(table.scope) {
			case 1:
				for a := range own {
					own[a] += table.ln[a]
				}
			case 2:
				other, stride, by := table.scope[1], e.Dims[table.scope[1]], 1
				if other == i {
					other, stride, by = table.scope[0], 1, d
				}
				o := f.differences(known, d, e.Dims[other], func(a, k int) float64 { return table.ln[a*stride+k*by] })
				o.row = int32(other) * 4 * Group
				fixed = append(fixed, o)
			default:
				stride := 1
				for k := len(table.scope) - 1; table.scope[k] != i; k-- {
					stride *= e.Dims[table.scope[k]]
				}
				o := f.differences(known, d, len(table.ln), func(a, k int) float64 { return table.ln[k+(a-k/stride%d)*stride] })
				o.row, o.stride = f.at[t]*4*Group, int32(stride)
				moving = append(moving, o)
			}
		}
		f.ops = append(f.ops, moving...)
		moved := len(f.ops)
		f.ops = append(f.ops, fixed...)
		f.sites = append(f.sites, site{int32(i) * 4 * Group, int32(d), int32(moved), int32(len(f.ops))})
		for a := 1; a < d; a++ {
			from := start[i][a] - start[i][0]
			f.own = append(f.own, float32(own[a]-own[0]-from))
			f.base = append(f.base, float32(from*math.Log2E))
		}
		f.work += f.price(d, moving, fixed)
	}
	return f, nil
}

func newLogTable(t sumproduct.Table) logTable {
	own := logTable{scope: t.Scope, ln: make([]float64, len(t.Data)), zero: make([]bool, len(t.Data))}
	least := math.Inf(1)
	for k, x := range t.Data {
		if own.zero[k] = x == 0; x > 0 {
			own.ln[k] = floats.Ln(x)
			if t.Exp != nil {
				own.ln[k] += float64(t.Exp[k]) * math.Ln2
			}
			least = min(least, own.ln[k])
		}
	}
	for k, zero := range own.zero {
		if zero && !math.IsInf(least, 1) {
			own.ln[k] = least - hardness
		}
	}
	return own
}

// differences appends ln(a, k) − ln(0, k) of k < n and 0 < a < d, unless they are known.
func (f *factors) differences(known map[string]int32, d, n int, ln func(a, k int) float64) op {
	size := n
	switch {
	case n <= Group:
		size = Group
	case n <= 2*Group:
		size = 2 * Group
	}
	own, name := make([]float32, (d-1)*size), make([]byte, 0, 4*(d-1)*size)
	for a := 1; a < d; a++ {
		for k := range n {
			own[(a-1)*size+k] = float32(ln(a, k) - ln(0, k))
		}
	}
	for _, x := range own {
		name = binary.LittleEndian.AppendUint32(name, math.Float32bits(x))
	}
	at, ok := known[string(name)]
	if !ok {
		at = int32(4 * len(f.ln))
		f.ln = append(f.ln, own...)
		known[string(name)] = at
	}
	return op{step: int32(4 * size), table: at}
}

// price is the time of a step at an index in flops, eight side by side. Measured on Potts models, colourings, and tables of
// arity 2 to 5.
func (f *factors) price(d int, moving, fixed []op) float64 {
	each := 6.0
	look := 1.0
	if d > 2 {
		each, look = 4+2.5*float64(d), 0.7*float64(d-1)
	}
	for _, o := range append(moving[:len(moving):len(moving)], fixed...) {
		if o.step > 8*Group {
			each += 4 * look
		} else {
			each += look
		}
	}
	return each + float64(len(moving))
}

// crowd is eight chains over factors: row r of chain c is rows[r·8+c].
type crowd struct {
	*factors
	random
	rows   []int32
	buffer []float32
	energy [Group]float64 // ln ψ less its value where chains begin
}

// anneal carries chains first to first+7 along a path. See Model.anneal.
func (f *factors) anneal(ctx context.Context, p Path, first int64, ln []float64, ends bool) (end []uint8) {
	w := f.begin(p.Seed, uint64(first))
	for k := range p.Rungs {
		if ctx.Err() != nil {
			return nil
		}
		if k%renewed == 0 || k+1 == p.Rungs {
			w.renew()
		}
		for c, e := range w.energy {
			ln[c] += e * (p.Beta(k+1) - p.Beta(k))
		}
		if part := p.part(k + 1); part >= 0 {
			copy(p.halts.ln[part][first-p.halts.first:], ln)
		}
		if k+1 < p.Rungs {
			w.sweep(p.Beta(k+1), p.Step)
		}
	}
	for c := range ln {
		if w.dead(c) {
			ln[c] = math.Inf(-1)
		}
	}
	if ends {
		end = make([]uint8, len(f.dims)*Group)
		for k := range end {
			end[k] = uint8(w.rows[k])
		}
	}
	return end
}

// begin returns chains first to first+7 where they begin.
func (f *factors) begin(seed, first uint64) *crowd {
	w := &crowd{factors: f, random: seeded(seed, first), rows: make([]int32, f.height*Group), buffer: make([]float32, 2*f.most*Group)}
	for i, d := range f.dims {
		for c := range Group {
			u, a := float64(w.next(c))*0x1p-32, 0
			for ; a < d-1; a++ {
				if u -= math.Exp(f.start[i][a]); u < 0 {
					break
				}
			}
			w.rows[i*Group+c] = int32(a)
		}
	}
	for t := range f.tables {
		for c := range Group {
			if row := int(f.at[t]); row > 0 {
				w.rows[row*Group+c] = int32(w.entry(t, c))
			}
		}
	}
	return w
}

// entry is where chain c is in table t.
func (w *crowd) entry(t, c int) (at int) {
	for _, i := range w.tables[t].scope {
		at = at*w.dims[i] + int(w.rows[i*Group+c])
	}
	return at
}

// renew recomputes energies.
func (w *crowd) renew() {
	for c := range Group {
		e := 0.0
		for t := range w.tables {
			e += w.tables[t].ln[w.entry(t, c)]
		}
		for i := range w.dims {
			e -= w.start[i][w.rows[i*Group+c]]
		}
		w.energy[c] = e
	}
}

// dead reports whether an entry is 0 where chain c is.
func (w *crowd) dead(c int) bool {
	for t := range w.tables {
		if w.tables[t].zero[w.entry(t, c)] {
			return true
		}
	}
	return false
}

// crowdArgs are a crowd as the loop of the processor sees it.
type crowdArgs struct {
	n      int64
	sites  *site
	rows   *int32
	ops    *op
	ln     *float32
	own    *float32
	base   *float32
	state  *random
	buffer *float32
	energy *[Group]float64
	scale  float32 // β log2 e
	step   Step
}

// sweep takes a step at every index of every chain: Metropolis steps only where an index has two values.
func (w *crowd) sweep(beta float64, step Step) {
	scale := float32(beta * math.Log2E)
	if !vectors || len(w.sites) == 0 {
		w.portable(scale, step)
		return
	}
	a := crowdArgs{
		n: int64(len(w.sites)), sites: &w.sites[0], rows: &w.rows[0], own: &w.own[0], base: &w.base[0],
		state: &w.random, buffer: &w.buffer[0], energy: &w.energy, scale: scale, step: step,
	}
	if len(w.ops) > 0 {
		a.ops, a.ln = &w.ops[0], &w.ln[0]
	}
	crowdVector(&a)
}

// portable is the loop without vectors.
func (w *crowd) portable(scale float32, step Step) {
	from, own := 0, 0
	for _, s := range w.sites {
		row := w.rows[s.row/4:][:Group]
		ops := w.ops[from:s.end]
		d := int(s.values)
		for c := range row {
			for a := 1; a < d; a++ {
				w.buffer[a] = w.own[own+a-1]
				for _, o := range ops {
					w.buffer[a] += w.ln[int(o.table+int32(a-1)*o.step)/4+int(w.rows[int(o.row)/4+c])]
				}
			}
			u := float32(float32(int32(w.next(c)>>1)) * 0x1p-31)
			var to int32
			if d == 2 {
				to = two(row[c], w.buffer[1], scale, w.base[own], u, step)
			} else {
				to = many(w.buffer[:2*d], scale, w.base[own:], u)
			}
			w.buffer[0] = 0
			if d == 2 {
				w.energy[c] += float64(float32(float32(to-row[c]) * w.buffer[1]))
			} else {
				w.energy[c] += float64(w.buffer[to] - w.buffer[row[c]])
			}
			for _, o := range w.ops[from:s.moved] {
				w.rows[int(o.row)/4+c] += o.stride * (to - row[c])
			}
			row[c] = to
		}
		from, own = int(s.end), own+d-1
	}
}

// two is the step of an index of two values, where value 1 has ln odds x·scale + base.
func two(old int32, x, scale, base, u float32, step Step) int32 {
	y := float32(x*scale) + base
	e := exp2(min(float32(math.Abs(float64(y))), 126))
	along := int32(1)
	if math.Signbit(float64(y)) {
		along = 0
	}
	if step == Metropolis {
		if along != old || u < e {
			return 1 - old
		}
		return old
	}
	if float32(u*float32(1+e)) < e {
		return 1 - along
	}
	return along
}

// many is the step of an index of more values: the second half of buffer is overwritten.
func many(buffer []float32, scale float32, base []float32, u float32) (to int32) {
	d := len(buffer) / 2
	y := buffer[d:]
	y[0] = 0
	top := float32(0)
	for a := 1; a < d; a++ {
		y[a] = float32(buffer[a]*scale) + base[a-1]
		top = max(top, y[a])
	}
	total := float32(0)
	for a := range y {
		total += exp2(min(top-y[a], 126))
		y[a] = total
	}
	t := float32(u * total)
	for _, x := range y[:d-1] {
		if x <= t {
			to++
		}
	}
	return to
}
