package dimacs

import (
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// IsFormula reports whether a model looks like one that was read from a CNF file: all variables have two values without
// names, and are called by numbers from 1 on that ascend. Numbers may be left out, as variables that are not shown are.
func IsFormula(m *factorgraph.Model) bool {
	if slices.ContainsFunc(m.Domains, func(size int) bool { return size != 2 }) {
		return false
	}
	previous := 0
	for _, name := range m.Names {
		number, err := strconv.Atoi(name)
		if err != nil || number <= previous || name != strconv.Itoa(number) {
			return false
		}
		previous = number
	}
	return len(m.Names) > 0 && len(m.States) == 0
}
