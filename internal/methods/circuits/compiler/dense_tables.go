package compiler

// The tables of an elimination: the factors of a variable, multiplied entry by entry.

import "slices"

// multiplyTables multiplies a table by the formula's tables in its bucket.
func (s *search) multiplyTables(table []float64, b *bucket) {
	for _, t := range b.tables {
		st := s.residual.tables[t.table]
		steps, base := s.tableSteps(b.scope, t.table)
		s.dense.multiply(table, b.scope, steps, base, st.table.values, st.met[t.slice].factor)
	}
}

// excludeAll puts 0 where a clause of the bucket does not hold.
func (s *search) excludeAll(table []float64, b *bucket) {
	for _, c := range b.pairs {
		s.exclude(table, b.scope, c[:])
	}
	for _, k := range b.clauses {
		s.exclude(table, b.scope, s.residual.clauses[k])
	}
}

// offsets are the steps in a message over some variables of scope, by place in scope and value.
func (e *eliminator) offsets(scope, some []int32) [][]int32 {
	steps := e.steps[:len(scope)]
	stride, k := int32(1), 0
	for at, j := range scope {
		steps[at] = e.takeInts(len(e.values[j]))
		if k < len(some) && some[k] == j {
			for x := range steps[at] {
				steps[at][x] = int32(x) * stride
			}
			stride *= int32(len(e.values[j]))
			k++
		}
	}
	return steps
}

// tableSteps are the steps in a table of the formula, and the place of its first entry under the assignment.
func (s *search) tableSteps(scope []int32, t int32) (steps [][]int32, base int32) {
	e, st := &s.dense, s.residual.tables[t]
	steps = e.steps[:len(scope)]
	for at, j := range scope {
		steps[at] = e.takeInts(len(e.values[j]))
	}
	for i, v := range st.table.scope {
		if a := s.residual.valueOf(v); a >= 0 {
			base += a * st.strides[i]
			continue
		}
		at, _ := slices.BinarySearch(scope, e.local[v])
		for x, a := range e.values[e.local[v]] {
			steps[at][x] = a * st.strides[i]
		}
	}
	return steps, base
}

// multiply multiplies a table over scope by factor[base + Σ steps] / by, entry by entry.
func (e *eliminator) multiply(table []float64, scope []int32, steps [][]int32, base int32, factor []float64, by float64) {
	x := e.x[:len(scope)]
	clear(x)
	first := steps[0]
	for j := 1; j < len(scope); j++ {
		base += steps[j][0]
	}
	for at := 0; at < len(table); at += len(first) {
		for k, step := range first {
			table[at+k] *= factor[base+step] / by
		}
		for j := 1; j < len(scope); j++ {
			base -= steps[j][x[j]]
			if x[j]++; x[j] < len(steps[j]) {
				base += steps[j][x[j]]
				break
			}
			x[j] = 0
			base += steps[j][0]
		}
	}
}

// exclude puts 0 where all literals of a clause are false.
func (s *search) exclude(table []float64, scope []int32, c []lit) {
	e := &s.dense
	var all [denseAxes]uint64
	falsify := all[:len(scope)] // by place: the values that make all literals of the variable false
	for at := range falsify {
		falsify[at] = 1<<len(e.values[scope[at]]) - 1
	}
	for _, l := range c {
		if s.residual.value[l] != 0 {
			continue
		}
		v := s.residual.problem.owner[l.Variable()]
		at, _ := slices.BinarySearch(scope, e.local[v])
		for x, a := range e.values[e.local[v]] {
			if s.holds(l, v, a) {
				falsify[at] &^= 1 << x
			}
		}
	}
	e.clearCells(table, scope, falsify, len(scope)-1, 0, len(table))
}

// holds reports whether a literal is true when variable v is a.
func (s *search) holds(l lit, v, a int32) bool {
	is := s.residual.problem.is(v, int(a))
	if is.Variable() == l.Variable() {
		return is == l
	}
	return !l.Positive() // another value of many is taken, so this one is not
}

// clearCells puts 0 at all values of falsify, from place at of the scope on down; the part of the table has size entries from base on.
func (e *eliminator) clearCells(table []float64, scope []int32, falsify []uint64, at, base, size int) {
	if at < 0 {
		table[base] = 0
		return
	}
	size /= len(e.values[scope[at]])
	for x := range e.values[scope[at]] {
		if falsify[at]&(1<<x) != 0 {
			e.clearCells(table, scope, falsify, at-1, base+x*size, size)
		}
	}
}
