// The figures by which a person recognises a model.

package factorgraph

import (
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Stats are the figures of a model that `btn plan` prints.
type Stats struct {
	Variables int // number of variables
	Factors   int // number of factors, of any order
	Legs      int // incidences in factors of order ≥ 2: the legs of the base tensor network
	MaxDomain int // largest domain, 0 without variables
	MaxArity  int // largest order of a factor, 0 without factors
	MaxDegree int // most factors of order ≥ 2 that share one variable

	Dense, CP, Symmetric, SymmetryCP int // factors by kind
	Zeros, Entries                   int // entries of the dense factors that are 0, and all of them
}

// Stats counts what Stats lists. A factor of one variable adds no legs and no degree. It needs a valid model and time linear in its size.
func (m *Model) Stats() Stats {
	s := Stats{Variables: len(m.Domains), Factors: len(m.Factors)}
	for _, d := range m.Domains {
		s.MaxDomain = max(s.MaxDomain, d)
	}
	degree := make([]int, len(m.Domains))
	for _, f := range m.Factors {
		s.MaxArity = max(s.MaxArity, len(f.Scope))
		if len(f.Scope) >= 2 {
			s.Legs += len(f.Scope)
			for _, v := range f.Scope {
				degree[v]++
				s.MaxDegree = max(s.MaxDegree, degree[v])
			}
		}
		switch t := f.Table.(type) {
		case *tensor.Dense:
			s.Dense++
			s.Entries += len(t.Data)
			for _, v := range t.Data {
				if v == 0 {
					s.Zeros++
				}
			}
		case *tensor.CP:
			s.CP++
		case *tensor.Symmetric:
			s.Symmetric++
		case *tensor.SymmetryCP:
			s.SymmetryCP++
		}
	}
	return s
}
