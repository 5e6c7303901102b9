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
	places := make([]int, 0, len(m.Factors))
	for j, f := range m.Factors {
		if falsifying, ok := excluded(f.Table); ok {
			clauses[j] = literals{f.Scope, falsifying}
			places = append(places, j)
		}
	}
	named := contradiction(len(m.Domains), clauses, places, observed)
	if len(named) == 0 || len(named) > mostShrunk {
		return named
	}
	numbered, variables, known := renumbered(clauses, named, observed)
	kept := make([]int, len(numbered))
	for k := range kept {
		kept[k] = k
	}
	for k := 0; k < len(kept); {
		if fewer := contradiction(variables, numbered, slices.Delete(slices.Clone(kept), k, k+1), known); fewer != nil {
			kept = fewer
		} else {
			k++
		}
	}
	contradicting := make([]int, len(kept))
	for k, place := range kept {
		contradicting[k] = named[place]
	}
	return contradicting
}

// renumbered returns the clauses at some places with their variables numbered from 0 on, the number of these, and the observations of them.
func renumbered(clauses []literals, places []int, observed []factorgraph.Observation) ([]literals, int, []factorgraph.Observation) {
	number := map[int]int{} // by variable
	numbered := make([]literals, len(places))
	for k, j := range places {
		numbered[k].values = clauses[j].values
		for _, v := range clauses[j].scope {
			if _, isKnown := number[v]; !isKnown {
				number[v] = len(number)
			}
			numbered[k].scope = append(numbered[k].scope, number[v])
		}
	}
	var known []factorgraph.Observation
	for _, o := range observed {
		if v, isKnown := number[o.Var]; isKnown {
			known = append(known, factorgraph.Observation{Var: v, Value: o.Value})
		}
	}
	return numbered, len(number), known
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
	falsify [][2][]int // places of clauses, by variable and the value that makes their literal false
	open    []int      // of each clause, the number of literals that are not known to be false
	value   []int8     // by variable; −1: open
	reason  []int      // clause by variable; −1: observed
	queue   []int      // variables
}

// contradiction returns the places, among some, of clauses from which propagation derives that one of them does not hold; nil if it derives
// no such thing. Empty clauses do not hold.
func contradiction(variables int, clauses []literals, places []int, observed []factorgraph.Observation) []int {
	p := &propagation{clauses: clauses, falsify: make([][2][]int, variables), open: make([]int, len(clauses)),
		value: slices.Repeat([]int8{-1}, variables), reason: slices.Repeat([]int{-1}, variables)}
	for _, j := range places {
		p.open[j] = len(clauses[j].scope)
		if p.open[j] == 0 {
			return []int{j}
		}
		for k, v := range clauses[j].scope {
			x := clauses[j].values[k]
			p.falsify[v][x] = append(p.falsify[v][x], j)
		}
	}
	for _, o := range observed {
		p.value[o.Var] = int8(o.Value)
		p.queue = append(p.queue, o.Var)
	}
	for _, j := range places {
		if p.open[j] == 1 {
			p.force(j)
		}
	}
	for k := 0; k < len(p.queue); k++ {
		v := p.queue[k]
		for _, j := range p.falsify[v][p.value[v]] {
			switch p.open[j]--; p.open[j] {
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
	causes, isCause := []int{clause}, map[int]bool{clause: true}
	for k := 0; k < len(causes); k++ {
		for _, v := range p.clauses[causes[k]].scope {
			if reason := p.reason[v]; reason >= 0 && !isCause[reason] {
				isCause[reason] = true
				causes = append(causes, reason)
			}
		}
	}
	slices.Sort(causes)
	return causes
}
