package formats

import (
	"fmt"
	"strconv"

	"github.com/basetensor/basetensor/internal/models/costs"
	"github.com/basetensor/basetensor/internal/models/dimacs"
	"github.com/basetensor/basetensor/internal/models/libdai"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Losses describes, for people, the parts of a model that a format cannot hold.
func Losses(to Format, m *factorgraph.Model) (list []string) {
	// names, and what the format's own package says
	labels, err := m.Labels()
	hasNames := err == nil && labels.Named()
	switch {
	case to == JSON:
		return nil
	case to == CNF:
		areNumbersFrom1 := dimacs.IsFormula(m) && m.Names[len(m.Names)-1] == strconv.Itoa(len(m.Names))
		if hasNames && !areNumbersFrom1 {
			list = append(list, "names of variables and values are lost: the format has numbers from 1 on")
		}
		return list
	case to == CFN:
		list = costs.Losses(m)
	case to == FG:
		if _, isComplete := libdai.Labels(m); !isComplete {
			list = append(list, "names of variables and values are lost: the format has numbers from 0 on")
		}
	case to == UAI && hasNames:
		list = append(list, "names of variables and values are lost: the format has none")
	}

	// forms of factors
	otherForms := 0
	for _, f := range m.Factors {
		if _, isTable := f.Table.(*tensor.Dense); !isTable {
			otherForms++
		}
	}
	if otherForms > 0 {
		list = append(list, fmt.Sprintf("factors that became tables, since the format has nothing else: %d", otherForms))
	}
	return list
}
