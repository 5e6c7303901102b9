package dimacs

// Clauses that contradict each other.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// mostShrunk is the largest number of clauses of a contradiction from which superfluous ones are removed.
const mostShrunk = 200

// Contradiction returns the positions of factors that are clauses and contradict each other under the observations. It finds them by unit
// propagation: a clause whose literals are all false but one makes that one true. It returns nil if propagation does not show that there is
// no solution.
//
// If there are at most mostShrunk (200), none of them can be spared; more may have superfluous ones. Weights of a variable of which one is
// 0 count as a clause of one literal, and other factors that are no clauses are passed over. Variables have to be binary (IsFormula), and
// observations valid. The time is linear in the literals of the formula.
func Contradiction(m *factorgraph.Model, observed []factorgraph.Observation) []int {
	// a contradiction, with superfluous clauses
	clauses := make([]literals, len(m.Factors))
	positions := make([]int, 0, len(m.Factors)) // of factors that are clauses
	for j, f := range m.Factors {
		if falsifying, ok := excludedValues(f.Table); ok {
			clauses[j] = literals{f.Scope, falsifying}
			positions = append(positions, j)
		}
	}
	conflict := propagate(len(m.Domains), clauses, positions, observed)
	if len(conflict) == 0 || len(conflict) > mostShrunk {
		return conflict
	}

	// try without each clause: those before position k of necessary are known to be needed
	small, variables, evidence := renumberVariables(clauses, conflict, observed)
	necessary := make([]int, len(small)) // positions in conflict
	for k := range necessary {
		necessary[k] = k
	}
	for k := 0; k < len(necessary); {
		if fewer := propagate(variables, small, slices.Delete(slices.Clone(necessary), k, k+1), evidence); fewer != nil {
			necessary = fewer
		} else {
			k++
		}
	}

	// as positions of factors
	contradicting := make([]int, len(necessary))
	for k, i := range necessary {
		contradicting[k] = conflict[i]
	}
	return contradicting
}

// renumberVariables returns the clauses at some positions with their variables numbered from 0 on, the number of these
// variables, and the observations of them.
func renumberVariables(
	clauses []literals, positions []int, observed []factorgraph.Observation,
) ([]literals, int, []factorgraph.Observation) {
	numberOf := map[int]int{} // by variable
	small := make([]literals, len(positions))
	for k, j := range positions {
		small[k].values = clauses[j].values
		for _, v := range clauses[j].scope {
			if _, isKnown := numberOf[v]; !isKnown {
				numberOf[v] = len(numberOf)
			}
			small[k].scope = append(small[k].scope, numberOf[v])
		}
	}
	var evidence []factorgraph.Observation
	for _, o := range observed {
		if v, isKnown := numberOf[o.Var]; isKnown {
			evidence = append(evidence, factorgraph.Observation{Var: v, Value: o.Value})
		}
	}
	return small, len(numberOf), evidence
}

// Literals returns the literals of a clause: v + 1 for variable v, and −(v + 1) for its negation. The second result is
// false if the factor is no clause.
func Literals(f factorgraph.Factor) ([]int, bool) {
	values, ok := excludedValues(f.Table)
	return literalNumbers(f.Scope, values), ok
}

// excludedValues returns the one combination of values for which a factor is 0, and whether the factor is a clause. A
// table of one variable counts as a clause too if one entry is 0 and another is not.
func excludedValues(t tensor.Tensor) ([]int, bool) {
	if weights, isDense := t.(*tensor.Dense); isDense && len(weights.Shape) == 1 {
		zero := slices.Index(weights.Data, 0)
		return []int{max(0, zero)}, zero >= 0 && slices.Max(weights.Data) > 0
	}
	return falsifyingValues(t)
}

// literals is a clause of binary variables: literal k is that variable scope[k] does not have the value values[k]. So the clause is false
// for one combination of values only.
type literals struct {
	scope  []int
	values []int
}

// propagation makes literals true that clauses force.
type propagation struct {
	clauses   []literals
	falsify   [][2][]int // falsify[v][x] has the positions of the clauses in which value x of variable v makes a literal false
	unrefuted []int      // per clause, the number of literals that no variable taken from the queue has made false
	value     []int8     // per variable, its value; −1: open
	reason    []int      // per variable, the clause that forced its value; −1: none did, as it is open or observed
	queue     []int      // variables that have a value
}

// propagate returns clauses that contradict the observations: a clause that unit propagation finds to be false, and the clauses that forced
// the values which led to that. Unit propagation looks for a clause whose literals are all false but one, and gives the variable of that
// literal the value that makes it true. It uses the clauses at positions only. It returns nil if it finds no contradiction. An empty clause
// is always false.
func propagate(variables int, clauses []literals, positions []int, observed []factorgraph.Observation) []int {
	p := &propagation{clauses: clauses, falsify: make([][2][]int, variables), unrefuted: make([]int, len(clauses)),
		value: slices.Repeat([]int8{-1}, variables), reason: slices.Repeat([]int{-1}, variables)} // −1: none

	for _, j := range positions {
		if len(clauses[j].scope) == 0 {
			return []int{j}
		}
		p.indexClause(j)
	}

	// Queue the variables that are observed, and those that a clause of one literal gives a value.
	for _, o := range observed {
		if p.value[o.Var] < 0 {
			p.queue = append(p.queue, o.Var)
		}
		p.value[o.Var] = int8(o.Value)
	}
	for _, j := range positions {
		if p.unrefuted[j] == 1 {
			p.forceLiteral(j)
		}
	}

	// Propagate the values. A clause whose literals are all false contradicts them. If one literal is left, forceLiteral makes it true and
	// queues its variable, unless the literal is true already.
	for k := 0; k < len(p.queue); k++ {
		v := p.queue[k]
		for _, j := range p.falsify[v][p.value[v]] {
			p.unrefuted[j]--
			switch p.unrefuted[j] {
			case 0:
				return p.causesOf(j)
			case 1:
				p.forceLiteral(j)
			}
		}
	}
	return nil
}

// indexClause enters clause j into the lists by literals: falsify[v][x] has the clauses in which x for variable v makes a literal false,
// and unrefuted[j] is the number of literals of clause j that are not false yet, here all.
func (p *propagation) indexClause(j int) {
	c := p.clauses[j]
	p.unrefuted[j] = len(c.scope)
	for k, v := range c.scope {
		x := c.values[k]
		p.falsify[v][x] = append(p.falsify[v][x], j)
	}
}

// forceLiteral makes the one literal true that is not false, unless its variable has a value already.
func (p *propagation) forceLiteral(clause int) {
	c := p.clauses[clause]
	for k, v := range c.scope {
		if p.value[v] < 0 {
			p.value[v], p.reason[v] = int8(1-c.values[k]), clause
			p.queue = append(p.queue, v)
			return
		}
	}
}

// causesOf returns the positions of a false clause and of all clauses that forced values which led to it, ascending.
func (p *propagation) causesOf(clause int) []int {
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
