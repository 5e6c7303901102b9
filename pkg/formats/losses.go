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

// Losses lists the parts of a model that a format lacks.
func Losses(to Format, m *factorgraph.Model) (list []string) {
	labels, err := m.Labels()
	named := err == nil && labels.Named()
	switch {
	case to == JSON:
		return nil
	case to == CNF:
		numbered := dimacs.IsFormula(m) && m.Names[len(m.Names)-1] == strconv.Itoa(len(m.Names))
		if named && !numbered {
			list = append(list, "names of variables and values are lost: the format has numbers from 1 on")
		}
		return list
	case to == CFN:
		list = costs.Lost(m)
	case to == FG:
		if _, isComplete := libdai.Labels(m); !isComplete {
			list = append(list, "names of variables and values are lost: the format has numbers from 0 on")
		}
	case to == UAI && named:
		list = append(list, "names of variables and values are lost: the format has none")
	}
	tables := 0
	for _, f := range m.Factors {
		if _, ok := f.Table.(*tensor.Dense); !ok {
			tables++
		}
	}
	if tables > 0 {
		list = append(list, fmt.Sprintf("factors that became tables, since the format has nothing else: %d", tables))
	}
	return list
}
