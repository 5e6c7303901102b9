package structured

// A fit written out: by values, with the pairs that deviate as tables of the rest.

import (
	"context"
	"math"
	"slices"
)

// roundingsPerLogarithm bounds the roundings of a logarithm: of a table's entry, of its share of a field, and of the statistics.
const roundingsPerLogarithm = 8

// writeFit writes an approximation as a fit, by values, with the pairs apart as tables of the rest. residual is Σ of the residuals of all
// other pairs, nats. It returns nil if no order eliminates the rest in small tables.
func (m *interactions) writeFit(ctx context.Context, s *spectrum, apart map[[2]int]bool, residual float64) (*Fit, error) {
	values := len(m.field)
	f := &Fit{Domains: m.domains, Ln: m.ln.Value(), Field: m.roundedFields(), Lambda: slices.Clone(s.lambda)}
	f.LnError = residual + math.Ldexp(roundingsPerLogarithm*m.lnRoundingSize, -53)
	f.Vectors = make([]float64, len(s.lambda)*values)
	for k, lambda := range s.lambda {
		vectors := f.Vectors[k*values:][:values]
		for i, d := range m.domains {
			for p := range d - 1 {
				w := s.directions[k*m.order+m.coordinate[i]+p]
				for a := range d {
					vectors[m.offset[i]+a] += m.basis[i][p*d+a] * w
				}
			}
		}
		for x, v := range vectors {
			f.Field[x] -= lambda / 2 * v * v
		}
	}
	pairs := make([][2]int, 0, len(apart))
	for p := range apart {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, p := range pairs {
		f.Rest = append(f.Rest, m.deviationTable(s, p))
	}
	f.Rest = append(f.Rest, m.otherTables...)
	if len(m.leaves) > 0 {
		f.Variables, f.Leaves = m.networkVariables, m.leaves
	}

	var err error
	if f.Order, err = f.restOrder(ctx); err != nil {
		return nil, err
	}
	if _, err := newProgram(f); err != nil {
		return nil, nil
	}
	return f, nil
}

// roundedFields returns the fields by value, rounded to float64.
func (m *interactions) roundedFields() []float64 {
	out := make([]float64, len(m.field))
	for x := range out {
		out[x] = m.field[x].Value()
	}
	return out
}

// deviationTable returns the table e^{A − Ã} of a pair of variables, for the interaction A of their tables without zeros and its
// approximation Ã. Their tables with zeros are tables of the rest themselves.
func (m *interactions) deviationTable(s *spectrum, p [2]int) Table {
	i, j := p[0], p[1]
	di, dj := m.domains[i], m.domains[j]
	t := Table{Scope: []int{i, j}, Values: make([]float64, di*dj)}
	for a := range di {
		for b := range dj {
			ln := 0.0
			for q := range di - 1 {
				for r := range dj - 1 {
					row, column := m.coordinate[i]+q, m.coordinate[j]+r
					x := m.matrix[row*m.order+column] - s.entry(m.order, row, column)
					ln += m.basis[i][q*di+a] * m.basis[j][r*dj+b] * x
				}
			}
			t.Values[a*dj+b] = math.Exp(ln)
		}
	}
	return t
}
