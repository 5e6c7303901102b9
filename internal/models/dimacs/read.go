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
// Weights are "c p weight LITERAL WEIGHT 0", decimal or a fraction. A variable without weights has 1 and 1. If the file gives only one
// weight w of a variable, the other one is 1 − w, as long as all weights given alone are probabilities, from 0 to 1. If one of them is not,
// the other weight is 1 for all of these variables. "w VARIABLE WEIGHT" is Cachet's form, in which −1 stands for 1 and 1.
//
// If "c p show" or "c ind" name some of the variables, Z is the projected count: each assignment of the shown variables counts once if the
// hidden ones, which are not named, can be given values so that all clauses hold. Hidden variables are eliminated by resolution, and the
// model has the shown variables alone, called by their numbers.
//
// Errors carry bad_input and the line; unsupported for other problems: p wcnf and the like, XOR clauses, and projected counting
// where a hidden variable has a weight, or their elimination takes more than mostWork steps. Memory grows with the input.
func Read(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	limits.Bytes = cmp.Or(limits.Bytes, 1<<30)
	limits.Variables = cmp.Or(limits.Variables, 1<<22)
	limits.Factors = cmp.Or(limits.Factors, 1<<23)
	limits.Legs = cmp.Or(limits.Legs, 1<<26)
	f := &reader{Scanner: words.New("cnf", r, limits.Bytes), limits: limits, variables: -1} // −1: no header yet
	for f.Err == nil && f.Next() {
		f.readItem()
	}
	if f.Err == nil {
		f.checkEnd()
	}
	if f.Err == nil {
		f.eliminateHidden()
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
	variables int      // the number of variables; −1 before the header
	clauses   int      // the number of clauses that the header announces
	literals  []int32  // of all clauses, one clause behind another: v, or −v for its negation
	ends      []int    // per clause, the position in literals behind its last one
	lines     []int    // per clause, the line on which it begins; nil once hidden variables are eliminated
	openLine  int      // the line on which the clause begins that has not ended; 0: none is open
	weights   []weight // in the sequence of the file
	shown     []int32  // the variables that c p show or c ind name; once the file is read, the variables of the model, ascending
	shownLine int      // the last line that names shown variables; 0: none does, and all are shown
	isOver    bool     // whether % was read, which ends the clauses
}

// readItem reads the item that begins with the current word: a comment, the header, a weight, or a literal. Nothing counts after %.
// Words that begin a line have a meaning of their own; w and % have it only outside of clauses, where openLine is 0.
func (f *reader) readItem() {
	switch {
	case f.isOver:
		f.SkipLine()
	case f.OpensLine && strings.HasPrefix(f.Word, "c"):
		f.readComment()
	case f.OpensLine && f.Word == "p":
		f.readHeader()
	case f.OpensLine && f.Word == "w" && f.openLine == 0:
		f.readCachetWeight()
	case f.OpensLine && f.Word == "%" && f.openLine == 0: // SATLIB's files end so
		f.isOver = true
		f.SkipLine()
	case f.OpensLine && strings.HasPrefix(f.Word, "x"):
		f.Fail(fault.Unsupported, uai.ErrModel, "clauses that are exclusive disjunctions (x) are not read")
	default:
		f.readLiteral()
	}
}

// readHeader reads the line "p cnf VARIABLES CLAUSES", whose first word is the current one.
func (f *reader) readHeader() {
	words := f.RestOfLine(4)
	switch {
	case f.Err != nil:
	case f.variables >= 0:
		f.FailInput(uai.ErrSyntax, "a second line with p")
	case len(words) > 0 && words[0] != "cnf":
		f.Fail(fault.Unsupported, uai.ErrModel, "%.40q is another problem: p cnf is read", "p "+words[0])
	case len(words) != 3:
		f.FailInput(uai.ErrSyntax, "p cnf VARIABLES CLAUSES is needed")
	default:
		f.variables = f.parseCount(words[1], "variables", f.limits.Variables)
		f.clauses = f.parseCount(words[2], "clauses", f.limits.Factors)
	}
}

// parseCount returns a number of the header, which must be at most limit.
func (f *reader) parseCount(word, what string, limit int) int {
	n, err := strconv.ParseUint(word, 10, 63)
	if err != nil && !strings.Contains(err.Error(), "range") { // out of range: a number, but too large
		f.FailInput(uai.ErrSyntax, "%.40q is no number of %s", word, what)
	} else if err != nil || n > uint64(limit) {
		f.FailInput(uai.ErrLimit, "%.40s %s, at most %d", word, what, limit)
	}
	return int(n)
}

// readLiteral takes the current word as a literal of a clause, or, if it is 0, as the end of the clause.
func (f *reader) readLiteral() {
	if f.variables < 0 {
		f.FailInput(uai.ErrSyntax, "%.40q where p cnf VARIABLES CLAUSES is needed", f.Word)
		return
	}
	n := f.parseInteger(f.Word, "a literal", f.variables)
	switch {
	case f.Err != nil:
	case n != 0:
		f.openLine = cmp.Or(f.openLine, f.Line) // where the clause begins
		if f.literals = append(f.literals, int32(n)); len(f.literals) > f.limits.Legs {
			f.FailInput(uai.ErrLimit, "more than %d literals", f.limits.Legs)
		}
	default:
		f.lines = append(f.lines, cmp.Or(f.openLine, f.Line))
		f.openLine = 0
		if f.ends = append(f.ends, len(f.literals)); len(f.ends) > f.clauses {
			f.FailInput(uai.ErrModel, "more clauses than the header says: %d", f.clauses)
		}
	}
}

// checkEnd checks what is known only at the end of the file: that the header was there, that all clauses are there and
// ended, the weights and the shown variables.
func (f *reader) checkEnd() {
	switch {
	case f.variables < 0:
		f.FailInput(uai.ErrSyntax, "the file ends without p cnf VARIABLES CLAUSES")
	case f.openLine != 0:
		f.FailInput(uai.ErrSyntax, "the file ends within the clause that begins in line %d: no 0", f.openLine)
	case len(f.ends) < f.clauses:
		f.FailInput(uai.ErrModel, "%d clauses, the header says %d", len(f.ends), f.clauses)
	case int64(f.variables) > f.BytesRead+spareVariables:
		f.FailInput(uai.ErrLimit, "%d variables in a file of %d bytes, at most its bytes and %d", f.variables, f.BytesRead, spareVariables)
	}
	f.checkWeights()
	f.checkShown()
}

// checkShown sorts the shown variables and removes duplicates. If the file names none, all variables are shown.
func (f *reader) checkShown() {
	if f.Err != nil {
		return
	}
	if f.shownLine == 0 {
		for v := range f.variables {
			f.shown = append(f.shown, int32(v+1))
		}
		return
	}
	slices.Sort(f.shown)
	f.shown = slices.Compact(f.shown)
	if n := len(f.shown); n > 0 && int(f.shown[n-1]) > f.variables {
		f.Line = f.shownLine
		f.FailInput(uai.ErrModel, "a variable that is shown: %d, there are %d variables", f.shown[n-1], f.variables)
	}
}

// model returns the formula as a factor graph of the shown variables: their weights other than 1 and 1, then the clauses.
func (f *reader) model() *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, len(f.shown))}
	weights, positions := f.weightsByVariable(), make([]int, f.variables) // of the variables of the file, in the model
	for v, n := range f.shown {
		m.Domains[v] = 2
		m.Names = append(m.Names, strconv.Itoa(int(n)))
		positions[n-1] = v
		if w := weights[n-1]; w != [2]float64{1, 1} {
			t := &tensor.Dense{Shape: []int{2}, Data: []float64{w[0], w[1]}}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: t})
		}
	}
	f.addClauses(m, positions)
	return m
}

// addClauses adds a factor for each clause that does not always hold. positions has the position in the model of each variable of the file.
// If the clauses are those of the file (f.lines is not nil), m.Lines becomes the line of each factor, 0 for a weight.
func (f *reader) addClauses(m *factorgraph.Model, positions []int) {
	if f.lines != nil {
		m.Lines = make([]int, len(m.Factors), len(m.Factors)+len(f.lines))
	}
	entries := int64(0) // of all tables of clauses
	for j, literals := range f.eachClause() {
		clause, isTautology := distinctLiterals(literals)
		if isTautology {
			continue
		}
		scope, positive := make([]int, len(clause)), make([]bool, len(clause))
		for k, l := range clause {
			scope[k], positive[k] = positions[max(l, -l)-1], l > 0
		}

		// A short clause becomes a table, as long as the tables together are not much larger than the file.
		clauseFactor := factorgraph.Factor{Scope: scope}
		if size := int64(1) << len(scope); len(scope) <= longestTable && entries+size <= f.BytesRead+spareEntries {
			entries += size
			clauseFactor.Table = clauseTable(positive)
		} else {
			clauseFactor.Table = factorgraph.Clause(positive...)
		}
		m.Factors = append(m.Factors, clauseFactor)
		if f.lines != nil {
			m.Lines = append(m.Lines, f.lines[j])
		}
	}
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

// distinctLiterals returns the literals of a clause, each once. isTautology is true if it has a literal and its
// negation: then it always holds.
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

// clauseTable returns the table of a clause: 0 where all literals are false and 1 elsewhere. positive[k] is false if literal k is negated.
func clauseTable(positive []bool) *tensor.Dense {
	t := &tensor.Dense{Shape: slices.Repeat([]int{2}, len(positive)), Data: slices.Repeat([]float64{1}, 1<<len(positive))}
	falsified := 0 // the index of the entry for which all literals are false
	for _, isPositive := range positive {
		falsified *= 2
		if !isPositive {
			falsified++
		}
	}
	t.Data[falsified] = 0
	return t
}

// parseInteger returns a word as a number from −limit to limit; 0 after an error.
func (f *reader) parseInteger(word, what string, limit int) int {
	n := f.ParseInteger(word, what)
	if n > limit || -n > limit {
		f.FailInput(uai.ErrModel, "%s: %d, there are %d variables", what, n, limit)
		return 0
	}
	return n
}
