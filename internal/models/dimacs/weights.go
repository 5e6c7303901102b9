package dimacs

// Comments that mean something, and weights.

import (
	"errors"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// weight is a literal's weight, and the line where it stands.
type weight struct {
	literal int32
	w       float64
	line    int
	both    bool // 1 for the literal and for its negation
}

// comment reads a line that begins with c: "c p weight" and "c p show" mean something, "c ind" does to some counters, and "c t" says
// which problem the file is. All others are passed.
func (f *reader) comment() {
	if f.Word != "c" {
		f.Skip()
		return
	}
	words := f.Rest(2)
	switch what := strings.Join(words, " "); {
	case what == "p weight":
		f.weight(f.Rest(4))
	case what == "p show":
		f.shows = f.Line
		f.show()
	case len(words) == 2 && words[0] == "ind":
		f.shows = f.Line
		f.shownAs(words[1])
		f.show()
	case len(words) == 2 && words[0] == "p":
		f.Fail(fault.Unsupported, uai.ErrModel, "%.40q is not read", "c "+what)
	}
	f.Skip()
}

// show notes the variables that a projected count is over, to the end of the line.
func (f *reader) show() {
	for f.Ahead() && f.Next() {
		f.shownAs(f.Word)
	}
}

// shownAs notes one of them.
func (f *reader) shownAs(word string) {
	n := f.integer(word, "a variable that is shown", f.known())
	if n < 0 {
		f.Bad(uai.ErrModel, "%d is no variable that is shown", n)
	}
	if n > 0 {
		f.shown = append(f.shown, int32(n))
	}
	if len(f.shown) > f.limits.Legs {
		f.Bad(uai.ErrLimit, "more than %d variables are shown", f.limits.Legs)
	}
}

// known is the number of variables; before the header it is the largest that there may be.
func (f *reader) known() int {
	if f.variables < 0 {
		return f.limits.Variables
	}
	return f.variables
}

// weight reads "LITERAL WEIGHT 0".
func (f *reader) weight(words []string) {
	if len(words) != 3 || words[2] != "0" {
		f.Bad(uai.ErrSyntax, "c p weight LITERAL WEIGHT 0 is needed")
		return
	}
	f.keep(words[0], words[1])
}

// cachet reads "w VARIABLE WEIGHT", with a 0 behind it or not.
func (f *reader) cachet() {
	words := f.Rest(4)
	switch {
	case len(words) == 2 && words[1] == "-1":
		if n := f.integer(words[0], "a variable with a weight", f.known()); n > 0 {
			f.weights = append(f.weights, weight{literal: int32(n), w: 1, line: f.Line, both: true})
		} else {
			f.Bad(uai.ErrModel, "%q is no variable", words[0])
		}
	case len(words) == 2, len(words) == 3 && words[2] == "0":
		f.keep(words[0], words[1])
	default:
		f.Bad(uai.ErrSyntax, "w VARIABLE WEIGHT is needed")
	}
}

// keep notes the weight of a literal.
func (f *reader) keep(literal, text string) {
	n := f.integer(literal, "a literal with a weight", f.known())
	if n == 0 {
		f.Bad(uai.ErrModel, "0 is no literal")
		return
	}
	f.weights = append(f.weights, weight{literal: int32(n), w: f.number(text), line: f.Line})
}

// number is a decimal number or a fraction of two.
func (f *reader) number(text string) float64 {
	above, below, fraction := strings.Cut(text, "/")
	x := f.decimal(above)
	if !fraction {
		return x
	}
	d := f.decimal(below)
	switch q := math.Abs(x / d); {
	case f.Err != nil:
	case d == 0:
		f.Bad(uai.ErrModel, "%.40q is no number", text)
	case x != 0 && (q < decimal.Least || math.IsInf(q, 0)):
		f.Bad(uai.ErrModel, "the weight %.40q %w", text, decimal.ErrRange)
	}
	return x / d
}

func (f *reader) decimal(text string) float64 {
	x, err := decimal.Parse(text)
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		f.Bad(uai.ErrSyntax, "%.40q %w", text, err)
	case err != nil:
		f.Bad(uai.ErrModel, "the weight %.40q %w", text, err)
	}
	return x
}

// checkWeights refuses weights of unknown variables, and duplicates.
func (f *reader) checkWeights() {
	if f.Err != nil {
		return
	}
	at := map[int32]int{} // line by literal
	for _, w := range f.weights {
		f.Line = w.line
		if int(max(w.literal, -w.literal)) > f.variables {
			f.Bad(uai.ErrModel, "a literal with a weight: %d, there are %d variables", w.literal, f.variables)
			return
		}
		of := []int32{w.literal, -w.literal}[:1]
		if w.both {
			of = []int32{w.literal, -w.literal}
		}
		for _, l := range of {
			if at[l] != 0 {
				f.Bad(uai.ErrModel, "literal %d has a weight in line %d already", l, at[l])
				return
			}
			at[l] = w.line
		}
	}
}

// byVariable are the weights of false and true.
func (f *reader) byVariable() [][2]float64 {
	list, given := make([][2]float64, f.variables), make([][2]bool, f.variables)
	side := func(l int32) int {
		if l > 0 {
			return 1
		}
		return 0
	}
	for v := range list {
		list[v] = [2]float64{1, 1}
	}
	for _, w := range f.weights {
		v := max(w.literal, -w.literal) - 1
		list[v][side(w.literal)] = w.w
		given[v][side(w.literal)] = true
		if w.both {
			given[v] = [2]bool{true, true}
		}
	}
	probabilities := true // all weights that stand alone
	for v, g := range given {
		for side := range 2 {
			w := list[v][side]
			probabilities = probabilities && (!g[side] || g[1-side] || w >= 0 && w <= 1)
		}
	}
	for v, g := range given {
		for side := range 2 {
			if probabilities && g[side] && !g[1-side] {
				list[v][1-side] = 1 - list[v][side]
			}
		}
	}
	return list
}
