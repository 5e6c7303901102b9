package dimacs

// Comments that mean something, and weights.

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// weight is the weight of a literal.
type weight struct {
	literal int32 // v, or −v for the negation of variable v
	value   float64
	line    int
	both    bool // the literal and its negation have the weight 1 each
}

// readComment reads a line that begins with c. "c p weight" has a weight, and "c p show" or "c ind" shown variables.
// Other lines with "c p" are an error, and all others are comments.
func (f *reader) readComment() {
	if f.Word != "c" { // cc, for example
		f.SkipLine()
		return
	}
	words := f.RestOfLine(2) // at most two words, and more remain to be read
	switch what := strings.Join(words, " "); {
	case what == "p weight":
		f.addWeightLine(f.RestOfLine(4))
	case what == "p show":
		f.shownLine = f.Line
		f.readShown()
	case len(words) == 2 && words[0] == "ind":
		f.shownLine = f.Line
		f.addShown(words[1])
		f.readShown()
	case len(words) == 2 && words[0] == "p":
		f.Fail(fault.Unsupported, uai.ErrModel, "%.40q is not read", "c "+what)
	}
	f.SkipLine()
}

// readShown reads shown variables up to the end of the line.
func (f *reader) readShown() {
	for f.HasMoreInLine() && f.Next() {
		f.addShown(f.Word)
	}
}

// addShown adds a shown variable. A 0, which ends a list, is passed over.
func (f *reader) addShown(word string) {
	n := f.parseInteger(word, "a variable that is shown", f.mostVariable())
	if n < 0 {
		f.FailInput(uai.ErrModel, "%d is no variable that is shown", n)
	}
	if n > 0 {
		f.shown = append(f.shown, int32(n))
	}
	if len(f.shown) > f.limits.Legs {
		f.FailInput(uai.ErrLimit, "more than %d variables are shown", f.limits.Legs)
	}
}

// mostVariable returns the largest number that a variable may have: of all variables, or, before the header, of the
// limit.
func (f *reader) mostVariable() int {
	if f.variables < 0 {
		return f.limits.Variables
	}
	return f.variables
}

// addWeightLine takes the words "LITERAL WEIGHT 0" as a weight.
func (f *reader) addWeightLine(words []string) {
	if len(words) != 3 || words[2] != "0" {
		f.FailInput(uai.ErrSyntax, "c p weight LITERAL WEIGHT 0 is needed")
		return
	}
	f.addWeight(words[0], words[1])
}

// readCachetWeight reads "w VARIABLE WEIGHT", with a 0 behind it or not. The weight −1 stands for 1 of the variable and
// 1 of its negation.
func (f *reader) readCachetWeight() {
	words := f.RestOfLine(4)
	switch {
	case len(words) == 2 && words[1] == "-1":
		if n := f.parseInteger(words[0], "a variable with a weight", f.mostVariable()); n > 0 {
			f.weights = append(f.weights, weight{literal: int32(n), value: 1, line: f.Line, both: true})
		} else {
			f.FailInput(uai.ErrModel, "%q is no variable", words[0])
		}
	case len(words) == 2, len(words) == 3 && words[2] == "0":
		f.addWeight(words[0], words[1])
	default:
		f.FailInput(uai.ErrSyntax, "w VARIABLE WEIGHT is needed")
	}
}

// addWeight adds the weight of a literal.
func (f *reader) addWeight(literal, text string) {
	n := f.parseInteger(literal, "a literal with a weight", f.mostVariable())
	if n == 0 {
		f.FailInput(uai.ErrModel, "0 is no literal")
		return
	}
	f.weights = append(f.weights, weight{literal: int32(n), value: f.parseWeight(text), line: f.Line})
}

// parseWeight returns a decimal number, or a fraction of two, as 1/3.
func (f *reader) parseWeight(text string) float64 {
	above, below, isFraction := strings.Cut(text, "/")
	numerator := f.parseDecimal(above)
	if !isFraction {
		return numerator
	}
	denominator := f.parseDecimal(below)
	switch size := math.Abs(numerator / denominator); {
	case f.Err != nil:
	case denominator == 0:
		f.FailInput(uai.ErrModel, "%.40q is no number", text)
	case numerator != 0 && (size < decimal.Least || math.IsInf(size, 0)):
		f.FailInput(uai.ErrModel, "the weight %.40q %w", text, decimal.ErrRange)
	}
	return numerator / denominator
}

// parseDecimal returns a text in decimal notation as a number.
func (f *reader) parseDecimal(text string) float64 {
	x, err := decimal.Parse(text)
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		f.FailInput(uai.ErrSyntax, "%.40q %w", text, err)
	case err != nil:
		f.FailInput(uai.ErrModel, "the weight %.40q %w", text, err)
	}
	return x
}

// checkWeights notes an error if a weight is of an unknown variable, or if a literal has two.
func (f *reader) checkWeights() {
	if f.Err != nil {
		return
	}
	lineOf := map[int32]int{} // by literal
	for _, w := range f.weights {
		f.Line = w.line
		if int(max(w.literal, -w.literal)) > f.variables {
			f.FailInput(uai.ErrModel, "a literal with a weight: %d, there are %d variables", w.literal, f.variables)
			return
		}
		literals := []int32{w.literal}
		if w.both { // the weight is that of the negation, too
			literals = append(literals, -w.literal)
		}
		for _, l := range literals {
			if lineOf[l] != 0 {
				f.FailInput(uai.ErrModel, "literal %d has a weight in line %d already", l, lineOf[l])
				return
			}
			lineOf[l] = w.line
		}
	}
}

// weightsByVariable returns the weights of false and of true for each variable. Without weights both are 1. If only one
// of them is given, the other is 1 minus it as long as all such weights of the file are probabilities, and else 1.
func (f *reader) weightsByVariable() [][2]float64 {
	// the weights of the file: weights[v][x] is that of value x of variable v, and isGiven whether the file has it
	weights, isGiven := slices.Repeat([][2]float64{{1, 1}}, f.variables), make([][2]bool, f.variables)
	for _, w := range f.weights {
		v, value := max(w.literal, -w.literal)-1, 0
		if w.literal > 0 {
			value = 1
		}
		weights[v][value] = w.value
		isGiven[v][value] = true
		if w.both { // the negation has the weight 1, too
			isGiven[v] = [2]bool{true, true}
		}
	}

	// are all weights probabilities of which only one is given?
	areProbabilities := true
	for v, given := range isGiven {
		for x := range 2 {
			isAlone := given[x] && !given[1-x]
			isProbability := weights[v][x] >= 0 && weights[v][x] <= 1
			areProbabilities = areProbabilities && (!isAlone || isProbability)
		}
	}

	// then the other one adds up to 1
	for v, given := range isGiven {
		for x := range 2 {
			if areProbabilities && given[x] && !given[1-x] {
				weights[v][1-x] = 1 - weights[v][x]
			}
		}
	}
	return weights
}
