package dimacs

import (
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// IsFormula reports whether variables have two values and are called by their numbers in a CNF file: from 1 on and rising, with gaps where
// some are not shown.
func IsFormula(m *factorgraph.Model) bool {
	if slices.ContainsFunc(m.Domains, func(size int) bool { return size != 2 }) {
		return false
	}
	last := 0
	for _, name := range m.Names {
		number, err := strconv.Atoi(name)
		if err != nil || number <= last || name != strconv.Itoa(number) {
			return false
		}
		last = number
	}
	return len(m.Names) > 0 && len(m.States) == 0
}
