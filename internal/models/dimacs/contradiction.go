package dimacs

// Clauses that contradict each other.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// mostShrunk is the maximum number of clauses of a contradiction from which superfluous ones are taken out.
const mostShrunk = 200

// Contradiction returns the positions of clauses of a formula that contradict each other, with observations, by unit propagation: a clause
// whose literals are all false but one makes that one true. It is nil if propagation does not show that there is no solution. Of up to 200
// clauses none can be spared. Factors that are no clauses are passed over; a weight of 0 is a clause of one literal. Time linear in the
// literals of the formula.
func Contradiction(m *factorgraph.Model, observed []factorgraph.Observation) []int {
	clauses := make([]literals, len(m.Factors))
	all := make([]int, 0, len(m.Factors))
	for j, f := range m.Factors {
		if falsifying, ok := excluded(f.Table); ok {
			clauses[j] = literals{f.Scope, falsifying}
			all = append(all, j)
		}
	}
	found := contradiction(len(m.Domains), clauses, all, observed)
	if len(found) == 0 || len(found) > mostShrunk {
		return found
	}
	part, variables, seen := among(clauses, found, observed)
	some := make([]int, len(part))
	for k := range some {
		some[k] = k
	}
	for k := 0; k < len(some); {
		if fewer := contradiction(variables, part, slices.Delete(slices.Clone(some), k, k+1), seen); fewer != nil {
			some = fewer
		} else {
			k++
		}
	}
	spared := make([]int, len(some))
	for k, place := range some {
		spared[k] = found[place]
	}
	return spared
}

// among returns some of the clauses with their variables numbered from 0 on, the number of these, and the observations of them.
func among(clauses []literals, some []int, observed []factorgraph.Observation) ([]literals, int, []factorgraph.Observation) {
	number := map[int]int{} // by variable
	part := make([]literals, len(some))
	for k, j := range some {
		part[k].values = clauses[j].values
		for _, v := range clauses[j].scope {
			if _, isKnown := number[v]; !isKnown {
				number[v] = len(number)
			}
			part[k].scope = append(part[k].scope, number[v])
		}
	}
	var seen []factorgraph.Observation
	for _, o := range observed {
		if v, isKnown := number[o.Var]; isKnown {
			seen = append(seen, factorgraph.Observation{Var: v, Value: o.Value})
		}
	}
	return part, len(number), seen
}

// Literals returns the literals of a clause by the numbers of variables from 1 on, and false of a factor that is no clause.
func Literals(f factorgraph.Factor) ([]int, bool) {
	values, ok := excluded(f.Table)
	list := make([]int, len(values))
	for k, x := range values {
		if list[k] = f.Scope[k] + 1; x == 1 {
			list[k] = -list[k]
		}
	}
	return list, ok
}

// excluded returns the one combination of values for which a factor is 0, and whether it is a clause. Of the weights of one variable they
// are those of the weight 0.
func excluded(t tensor.Tensor) ([]int, bool) {
	if weights, isDense := t.(*tensor.Dense); isDense && len(weights.Shape) == 1 {
		zero := slices.Index(weights.Data, 0)
		return []int{max(0, zero)}, zero >= 0 && slices.Max(weights.Data) > 0
	}
	return falsified(t)
}

// literals is a clause: it does not hold if its variables have these values.
type literals struct {
	scope  []int
	values []int
}

// propagation makes literals true that clauses force.
type propagation struct {
	clauses []literals
	with    [][2][]int // clauses, by variable and the value that makes their literal false
	left    []int      // literals of each clause that are not false
	value   []int8     // by variable; −1: open
	reason  []int      // clause by variable; −1: observed
	queue   []int      // variables
}

// contradiction returns those of some clauses from which propagation derives that one of them does not hold; nil if it derives no such
// thing. Empty clauses do not hold.
func contradiction(variables int, clauses []literals, some []int, observed []factorgraph.Observation) []int {
	p := &propagation{clauses: clauses, with: make([][2][]int, variables), left: make([]int, len(clauses)),
		value: slices.Repeat([]int8{-1}, variables), reason: slices.Repeat([]int{-1}, variables)}
	for _, j := range some {
		p.left[j] = len(clauses[j].scope)
		if p.left[j] == 0 {
			return []int{j}
		}
		for k, v := range clauses[j].scope {
			x := clauses[j].values[k]
			p.with[v][x] = append(p.with[v][x], j)
		}
	}
	for _, o := range observed {
		p.value[o.Var] = int8(o.Value)
		p.queue = append(p.queue, o.Var)
	}
	for _, j := range some {
		if p.left[j] == 1 {
			p.force(j)
		}
	}
	for k := 0; k < len(p.queue); k++ {
		v := p.queue[k]
		for _, j := range p.with[v][p.value[v]] {
			switch p.left[j]--; p.left[j] {
			case 0:
				return p.because(j)
			case 1:
				p.force(j)
			}
		}
	}
	return nil
}

// force makes the last literal of a clause true, unless a literal of it is.
func (p *propagation) force(clause int) {
	c := p.clauses[clause]
	for k, v := range c.scope {
		if p.value[v] < 0 {
			p.value[v], p.reason[v] = int8(1-c.values[k]), clause
			p.queue = append(p.queue, v)
			return
		}
	}
}

// because returns the clauses that a clause does not hold by, with itself, in their sequence.
func (p *propagation) because(clause int) []int {
	found, seen := []int{clause}, map[int]bool{clause: true}
	for k := 0; k < len(found); k++ {
		for _, v := range p.clauses[found[k]].scope {
			if reason := p.reason[v]; reason >= 0 && !seen[reason] {
				seen[reason] = true
				found = append(found, reason)
			}
		}
	}
	slices.Sort(found)
	return found
}
