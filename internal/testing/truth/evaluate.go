package truth

// Factors, entry by entry, from the definitions of the native format.

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Table returns all entries of a factor, the last variable of its scope fastest.
func Table(t tensor.Tensor) []Number {
	dims := t.Dims()
	out := make([]Number, product(dims))
	x := make([]int, len(dims))
	for i := range out {
		out[i] = entry(t, x)
		step(x, dims)
	}
	return out
}

// entry is one entry of a factor.
func entry(t tensor.Tensor, x []int) Number {
	switch t := t.(type) {
	case *tensor.Dense:
		i := 0
		for pos, v := range x {
			i = i*t.Shape[pos] + v
		}
		return FromFloat(t.Data[i], 0)

	case *tensor.CP:
		return cpEntry(t, x)

	case *tensor.Symmetric:
		return at(t.Values, countIndex(t.Levels, x))

	case *tensor.SymmetryCP:
		sum := Number{}
		for _, term := range t.Terms {
			v := FromFloat(term.Alpha, 0).Mul(at(term.S, countIndex(t.Levels, x)))
			for pos, a := range x {
				if term.R != nil && term.R[pos] != nil {
					v = v.Mul(FromFloat(term.R[pos][a], 0))
				}
			}
			sum = sum.Add(v)
		}
		return sum
	}

	panic(fmt.Sprintf("truth: a tensor of type %T", t))
}

// cpEntry is Σ_t w_t Π_l v_l[t][x_l].
func cpEntry(t *tensor.CP, x []int) Number {
	sum := Number{}
	for term, w := range t.Weights {
		v := FromFloat(w, 0)
		for pos, a := range x {
			switch vectors := t.Vectors[pos]; {
			case vectors != nil:
				v = v.Mul(FromFloat(vectors[term*t.Shape[pos]+a], 0))
			case term != a:
				v = Number{}
			}
		}
		sum = sum.Add(v)
	}
	return sum
}

// at is entry i of a list of scaled numbers.
func at(v scaled.Vector, i int) Number {
	if v.Exp == nil {
		return FromFloat(v.Mant[i], 0)
	}
	return FromFloat(v.Mant[i], v.Exp[i])
}

// countIndex is the place of x's count vector: counts of levels 1 to D−1, the last fastest, each
// from 0 to the number of positions that can be at that level.
func countIndex(l countspace.Levels, x []int) int {
	index := 0
	for a := 1; a < l.D; a++ {
		possible, count := 0, 0
		for pos, of := range l.Of {
			for _, level := range of {
				if int(level) == a {
					possible++
					break
				}
			}
			if int(of[x[pos]]) == a {
				count++
			}
		}
		index = index*(possible+1) + count
	}

	return index
}

// Weights returns Π_j φ_j(x) for every assignment x of a model, the last variable fastest.
func Weights(m *factorgraph.Model) []Number {
	e := enumeration{
		m:      m,
		due:    make([][]int, len(m.Domains)+1),
		tables: make([][]Number, len(m.Factors)),
		x:      make([]int, len(m.Domains)),
	}
	for j, f := range m.Factors {
		e.tables[j] = Table(f.Table)
		last := 0
		for _, v := range f.Scope {
			last = max(last, v+1)
		}
		e.due[last] = append(e.due[last], j)
	}

	e.out = make([]Number, 0, product(m.Domains))
	e.visit(0, One)
	return e.out
}

// enumeration walks over all assignments, one variable after the other.
type enumeration struct {
	m      *factorgraph.Model
	tables [][]Number
	due    [][]int // due[v]: the factors whose last variable is v−1
	x      []int
	out    []Number
}

// visit multiplies w by the factors that the first v variables determine, and goes on.
func (e *enumeration) visit(v int, w Number) {
	for _, j := range e.due[v] {
		i := 0
		for _, u := range e.m.Factors[j].Scope {
			i = i*e.m.Domains[u] + e.x[u]
		}
		w = w.Mul(e.tables[j][i])
	}
	if v == len(e.x) {
		e.out = append(e.out, w)
		return
	}
	for a := range e.m.Domains[v] {
		e.x[v] = a
		e.visit(v+1, w)
	}
}

// product is the number of assignments of some domains.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// step moves x to the next assignment.
func step(x, dims []int) {
	for i := len(x) - 1; i >= 0; i-- {
		if x[i]++; x[i] < dims[i] {
			return
		}
		x[i] = 0
	}
}
