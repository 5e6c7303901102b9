// Package dimacs reads and writes weighted formulas in conjunctive normal form as factor graphs: DIMACS's CNF, with the weights of the
// model counting competitions (c p weight) or Cachet's (w). Z is the weighted number of models.
//
// Variable n of the file is the variable called "n", at position n − 1, with the values 0 (false) and 1 (true).
package dimacs

import (
	"cmp"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/models/words"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// longestTable is the maximum number of literals of a clause that becomes a table, as long as all tables together have no more entries
// than the file has bytes, and spareEntries more. Its entries are 0 and 1; the two terms of a CP tensor have both signs, and sums of
// many of them lose digits: mc2022_track2_029, with twelve clauses of five literals, takes 36 s of CPU time where those are CP
// tensors, most of it to recompute the result in wide numbers.
const longestTable = 8

// The variables and table entries of a file are at most its bytes and these. Half the variables of a file may be in no clause, and some
// thousand in a small file, while its cost follows its bytes, not a number in its header.
const (
	spareVariables = 1 << 12
	spareEntries   = 1 << 20
)

// Read reads a formula in conjunctive normal form. A weight is a factor over its variable; a clause is a factor that is 0 where all its
// literals are false and 1 elsewhere, a table up to eight literals and a CP tensor of two terms beyond. Literals that are there twice
// count once, and a clause with a literal and its negation is left out.
//
// Weights are "c p weight LITERAL WEIGHT 0", decimal or a fraction. Of a variable without any both are 1. Of a variable with one of them,
// w, the other is 1 − w as long as all such weights of the file are probabilities, from 0 to 1; if any is not, the other is 1 for all.
// "w VARIABLE WEIGHT" is Cachet's, −1 standing for 1 and 1.
//
// Where "c p show" or "c ind" name some of the variables, Z is the projected count: of their assignments, each once, for which the others
// have a solution. The others are eliminated by resolution, and the model has the shown variables alone, called by their numbers.
//
// Errors carry bad_input and the line; unsupported for other problems: p wcnf and the like, XOR clauses, and projected counting
// where a hidden variable has a weight, or their elimination takes more than mostWork steps. Memory grows with the input.
func Read(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	limits.Bytes = cmp.Or(limits.Bytes, 1<<30)
	limits.Variables = cmp.Or(limits.Variables, 1<<22)
	limits.Factors = cmp.Or(limits.Factors, 1<<23)
	limits.Legs = cmp.Or(limits.Legs, 1<<26)
	f := &reader{Scanner: words.New("cnf", r, limits.Bytes), limits: limits, variables: -1}
	for f.Err == nil && f.Next() {
		f.item()
	}
	if f.Err == nil {
		f.finish()
	}
	if f.Err == nil {
		f.project()
	}
	if f.Err != nil {
		return nil, f.Err
	}
	return f.model(), nil
}

// reader is a file as far as it is read.
type reader struct {
	*words.Scanner
	limits    uai.Limits
	variables int // −1 before the header
	clauses   int // as the header says
	literals  []int32
	ends      []int // of the clauses, in literals
	lines     []int // on which the clauses begin; nil once hidden variables are eliminated
	open      int   // line of the clause that has not ended; 0 for none
	weights   []weight
	shown     []int32 // of c p show and c ind; the model's variables once the file is read
	shows     int     // the line of the last of these; 0 for none
	over      bool    // behind %
}

// item reads the item that begins with the current word: a comment, the header, a weight, or literals.
func (f *reader) item() {
	switch {
	case f.over:
		f.Skip()
	case f.Opens && strings.HasPrefix(f.Word, "c"):
		f.comment()
	case f.Opens && f.Word == "p":
		f.header()
	case f.Opens && f.Word == "w" && f.open == 0:
		f.cachet()
	case f.Opens && f.Word == "%" && f.open == 0: // SATLIB's files end so
		f.over = true
		f.Skip()
	case f.Opens && strings.HasPrefix(f.Word, "x"):
		f.Fail(fault.Unsupported, uai.ErrModel, "clauses that are exclusive disjunctions (x) are not read")
	default:
		f.literal()
	}
}

// header reads "p cnf VARIABLES CLAUSES".
func (f *reader) header() {
	words := f.Rest(4)
	switch {
	case f.Err != nil:
	case f.variables >= 0:
		f.Bad(uai.ErrSyntax, "a second line with p")
	case len(words) > 0 && words[0] != "cnf":
		f.Fail(fault.Unsupported, uai.ErrModel, "%.40q is another problem: p cnf is read", "p "+words[0])
	case len(words) != 3:
		f.Bad(uai.ErrSyntax, "p cnf VARIABLES CLAUSES is needed")
	default:
		f.variables = f.count(words[1], "variables", f.limits.Variables)
		f.clauses = f.count(words[2], "clauses", f.limits.Factors)
	}
}

// count is a number of the header.
func (f *reader) count(word, what string, most int) int {
	n, err := strconv.ParseUint(word, 10, 63)
	if err != nil && !strings.Contains(err.Error(), "range") {
		f.Bad(uai.ErrSyntax, "%.40q is no number of %s", word, what)
	} else if err != nil || n > uint64(most) {
		f.Bad(uai.ErrLimit, "%.40s %s, at most %d", word, what, most)
	}
	return int(n)
}

// literal reads a literal of a clause, or its end.
func (f *reader) literal() {
	if f.variables < 0 {
		f.Bad(uai.ErrSyntax, "%.40q where p cnf VARIABLES CLAUSES is needed", f.Word)
		return
	}
	n := f.integer(f.Word, "a literal", f.variables)
	switch {
	case f.Err != nil:
	case n != 0:
		f.open = cmp.Or(f.open, f.Line)
		if f.literals = append(f.literals, int32(n)); len(f.literals) > f.limits.Legs {
			f.Bad(uai.ErrLimit, "more than %d literals", f.limits.Legs)
		}
	default:
		f.lines = append(f.lines, cmp.Or(f.open, f.Line))
		f.open = 0
		if f.ends = append(f.ends, len(f.literals)); len(f.ends) > f.clauses {
			f.Bad(uai.ErrModel, "more clauses than the header says: %d", f.clauses)
		}
	}
}

// finish checks conditions that are known only at the end.
func (f *reader) finish() {
	switch {
	case f.variables < 0:
		f.Bad(uai.ErrSyntax, "the file ends without p cnf VARIABLES CLAUSES")
	case f.open != 0:
		f.Bad(uai.ErrSyntax, "the file ends within the clause that begins in line %d: no 0", f.open)
	case len(f.ends) < f.clauses:
		f.Bad(uai.ErrModel, "%d clauses, the header says %d", len(f.ends), f.clauses)
	case int64(f.variables) > f.Read+spareVariables:
		f.Bad(uai.ErrLimit, "%d variables in a file of %d bytes, at most its bytes and %d", f.variables, f.Read, spareVariables)
	}
	f.checkWeights()
	f.checkShown()
}

// checkShown sorts the variables that are shown: all of them if the file names none.
func (f *reader) checkShown() {
	if f.Err != nil {
		return
	}
	if f.shows == 0 {
		for v := range f.variables {
			f.shown = append(f.shown, int32(v+1))
		}
		return
	}
	slices.Sort(f.shown)
	f.shown = slices.Compact(f.shown)
	if n := len(f.shown); n > 0 && int(f.shown[n-1]) > f.variables {
		f.Line = f.shows
		f.Bad(uai.ErrModel, "a variable that is shown: %d, there are %d variables", f.shown[n-1], f.variables)
	}
}

// model returns the formula that was read, as a factor graph.
func (f *reader) model() *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, len(f.shown))}
	weights, positions := f.byVariable(), make([]int, f.variables)
	for v, n := range f.shown {
		m.Domains[v] = 2
		m.Names = append(m.Names, strconv.Itoa(int(n)))
		positions[n-1] = v
		if w := weights[n-1]; w != [2]float64{1, 1} {
			t := &tensor.Dense{Shape: []int{2}, Data: []float64{w[0], w[1]}}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: t})
		}
	}
	m.Lines = make([]int, len(m.Factors), len(m.Factors)+len(f.lines))
	entries := int64(0)
	for j, literals := range f.eachClause() {
		clause, isTautology := distinctLiterals(literals)
		if isTautology {
			continue
		}
		scope, positive := make([]int, len(clause)), make([]bool, len(clause))
		for k, l := range clause {
			scope[k], positive[k] = positions[max(l, -l)-1], l > 0
		}
		table := len(scope) <= longestTable && entries+1<<len(scope) <= f.Read+spareEntries
		if table {
			entries += 1 << len(scope)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: disjunction(positive, table)})
		if f.lines != nil {
			m.Lines = append(m.Lines, f.lines[j])
		}
	}
	if f.lines == nil {
		m.Lines = nil
	}
	return m
}

// eachClause yields the position and the literals of each clause, as the file has them.
func (f *reader) eachClause() iter.Seq2[int, []int32] {
	return func(yield func(int, []int32) bool) {
		start := 0
		for j, end := range f.ends {
			if !yield(j, f.literals[start:end]) {
				return
			}
			start = end
		}
	}
}

// distinctLiterals returns the literals of a clause, each once. A tautology, which has a literal and its negation, always holds.
func distinctLiterals(literals []int32) (clause []int32, isTautology bool) {
	clause = make([]int32, 0, len(literals))
	set := make(map[int32]bool, len(literals))
	for _, l := range literals {
		switch {
		case set[-l]:
			return nil, true
		case !set[l]:
			set[l] = true
			clause = append(clause, l)
		}
	}
	return clause, false
}

// disjunction is the factor of a clause.
func disjunction(positive []bool, table bool) tensor.Tensor {
	if !table {
		return factorgraph.Clause(positive...)
	}
	t := &tensor.Dense{Shape: slices.Repeat([]int{2}, len(positive)), Data: slices.Repeat([]float64{1}, 1<<len(positive))}
	falsified := 0
	for _, p := range positive {
		falsified *= 2
		if !p {
			falsified++
		}
	}
	t.Data[falsified] = 0
	return t
}

// integer is a word as a number in ±most; 0 after an error.
func (f *reader) integer(word, what string, most int) int {
	n := f.Integer(word, what)
	if n > most || -n > most {
		f.Bad(uai.ErrModel, "%s: %d, there are %d variables", what, n, most)
		return 0
	}
	return n
}
