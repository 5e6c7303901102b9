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
// clauses none can be spared, more may hold superfluous ones. Factors that are no clauses are passed over; weights of a variable of which
// one is 0 are a clause of one literal. Variables are binary (IsFormula), observations valid. Time linear in the literals of the formula.
func Contradiction(m *factorgraph.Model, observed []factorgraph.Observation) []int {
	clauses := make([]literals, len(m.Factors))
	positions := make([]int, 0, len(m.Factors))
	for j, f := range m.Factors {
		if falsifying, ok := excluded(f.Table); ok {
			clauses[j] = literals{f.Scope, falsifying}
			positions = append(positions, j)
		}
	}
	conflict := contradiction(len(m.Domains), clauses, positions, observed)
	if len(conflict) == 0 || len(conflict) > mostShrunk {
		return conflict
	}
	small, variables, evidence := renumbered(clauses, conflict, observed)
	necessary := make([]int, len(small)) // places in conflict; those before k are necessary
	for k := range necessary {
		necessary[k] = k
	}
	for k := 0; k < len(necessary); {
		if fewer := contradiction(variables, small, slices.Delete(slices.Clone(necessary), k, k+1), evidence); fewer != nil {
			necessary = fewer
		} else {
			k++
		}
	}
	contradicting := make([]int, len(necessary))
	for k, i := range necessary {
		contradicting[k] = conflict[i]
	}
	return contradicting
}

// renumbered returns the clauses at some positions with their variables numbered from 0 on, the number of these, and the observations of
// them.
func renumbered(clauses []literals, positions []int, observed []factorgraph.Observation) ([]literals, int, []factorgraph.Observation) {
	number := map[int]int{} // by variable
	small := make([]literals, len(positions))
	for k, j := range positions {
		small[k].values = clauses[j].values
		for _, v := range clauses[j].scope {
			if _, isKnown := number[v]; !isKnown {
				number[v] = len(number)
			}
			small[k].scope = append(small[k].scope, number[v])
		}
	}
	var evidence []factorgraph.Observation
	for _, o := range observed {
		if v, isKnown := number[o.Var]; isKnown {
			evidence = append(evidence, factorgraph.Observation{Var: v, Value: o.Value})
		}
	}
	return small, len(number), evidence
}

// Literals returns the literals of a clause by the numbers of variables from 1 on, and false of a factor that is no clause.
func Literals(f factorgraph.Factor) ([]int, bool) {
	values, ok := excluded(f.Table)
	list := make([]int, len(values))
	for k, x := range values {
		list[k] = f.Scope[k] + 1
		if x == 1 {
			list[k] = -list[k]
		}
	}
	return list, ok
}

// excluded returns the one combination of values for which a factor is 0, if it is a clause; for weights of one variable, the value of the
// weight 0, unless all are 0.
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
	clauses   []literals
	falsify   [][2][]int // positions of clauses, by variable and the value that makes their literal false
	unrefuted []int      // of each clause, the number of literals that no variable taken from the queue has made false
	value     []int8     // by variable; −1: open
	reason    []int      // clause by variable; −1: observed
	queue     []int      // variables
}

// contradiction returns, of the clauses at some positions, those from which propagation derives that one of them does not hold; nil if it
// derives no such thing. Empty clauses do not hold.
func contradiction(variables int, clauses []literals, positions []int, observed []factorgraph.Observation) []int {
	p := &propagation{clauses: clauses, falsify: make([][2][]int, variables), unrefuted: make([]int, len(clauses)),
		value: slices.Repeat([]int8{-1}, variables), reason: slices.Repeat([]int{-1}, variables)}
	for _, j := range positions {
		p.unrefuted[j] = len(clauses[j].scope)
		if p.unrefuted[j] == 0 {
			return []int{j}
		}
		for k, v := range clauses[j].scope {
			x := clauses[j].values[k]
			p.falsify[v][x] = append(p.falsify[v][x], j)
		}
	}
	for _, o := range observed {
		if p.value[o.Var] < 0 {
			p.queue = append(p.queue, o.Var)
		}
		p.value[o.Var] = int8(o.Value)
	}
	for _, j := range positions {
		if p.unrefuted[j] == 1 {
			p.force(j)
		}
	}
	for k := 0; k < len(p.queue); k++ {
		v := p.queue[k]
		for _, j := range p.falsify[v][p.value[v]] {
			p.unrefuted[j]--
			switch p.unrefuted[j] {
			case 0:
				return p.because(j)
			case 1:
				p.force(j)
			}
		}
	}
	return nil
}

// force makes the last literal of a clause true, unless its variable has a value.
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

// because returns the positions of the clauses that made a clause fail, and its own, ascending.
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
