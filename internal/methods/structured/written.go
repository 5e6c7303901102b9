package structured

// A fit written out: by values, with the pairs that deviate as tables of the rest.

import (
	"context"
	"math"
	"slices"
)

// roundingsPerLogarithm bounds the roundings of a logarithm: of a table's entry, of its share of a field, and of the statistics.
const roundingsPerLogarithm = 8

// writeFit returns an approximation as a fit. The rest of the fit is a list of tables besides its statistics. It has a table for each
// outlier: a pair of variables that the approximation does not fit. residual is the sum of the residuals of all other pairs, nats. It
// returns nil if no order eliminates the rest in small tables.
func (m *interactions) writeFit(ctx context.Context, approximation *lowRank, outliers map[[2]int]bool, residual float64) (*Fit, error) {
	f := &Fit{Domains: m.domains, Ln: m.ln.Value(), Field: m.roundedFields(), Lambda: slices.Clone(approximation.lambda)}
	f.LnError = residual + math.Ldexp(roundingsPerLogarithm*m.lnRoundingSize, -53) // 2⁻⁵³: one rounding of a float64, relative
	f.Vectors = m.vectorsOf(approximation)
	values := len(m.field)
	for k, lambda := range f.Lambda { // the fields lose the squares ½ λ_k v_k², which are in ½ λ_k s_k², too
		for x, v := range f.Vectors[k*values:][:values] {
			f.Field[x] -= lambda / 2 * v * v
		}
	}

	// The rest: the outliers' tables in a fixed sequence, then the tables that are no interactions.
	pairs := make([][2]int, 0, len(outliers))
	for p := range outliers {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, p := range pairs {
		f.Rest = append(f.Rest, m.deviationTable(approximation, p))
	}
	f.Rest = append(f.Rest, m.otherTables...)
	if len(m.leaves) > 0 {
		f.Variables, f.Leaves = m.networkVariables, m.leaves
	}

	var err error
	if f.Order, err = f.restOrder(ctx); err != nil {
		return nil, err
	}
	if _, err := newProgram(f); err != nil { // a table along the order is too large
		return nil, nil
	}
	return f, nil
}

// vectorsOf returns the statistics of an approximation by value: v_k(i, a) = Σ_p functions[i][p*d+a] · w_k(i, p) for value a of variable i,
// statistic by statistic. w_k are the directions, and p the coordinates of the variable.
func (m *interactions) vectorsOf(approximation *lowRank) []float64 {
	values := len(m.field)
	all := make([]float64, len(approximation.lambda)*values)
	for k := range approximation.lambda {
		vectors := all[k*values:][:values]
		for i, d := range m.domains {
			for p := range d - 1 {
				w := approximation.directions[k*m.order+m.firstCoordinate[i]+p]
				for a := range d {
					vectors[m.firstValue[i]+a] += m.functions[i][p*d+a] * w
				}
			}
		}
	}
	return all
}

// roundedFields returns the fields, by value, as float64.
func (m *interactions) roundedFields() []float64 {
	rounded := make([]float64, len(m.field))
	for x := range rounded {
		rounded[x] = m.field[x].Value()
	}
	return rounded
}

// deviationTable returns the table e^{A − Ã} of the pair of variables p. A is their interaction, from their tables without zeros, and Ã is
// the approximation s of A. A and Ã are given in coordinates: A(a, b) = Σ_{q,r} functions_i(q, a) functions_j(r, b) · matrix entry (q of i,
// r of j). The pair's tables with zeros do not enter the result: the fit keeps them as they are.
func (m *interactions) deviationTable(s *lowRank, p [2]int) Table {
	i, j := p[0], p[1]
	di, dj := m.domains[i], m.domains[j]
	t := Table{Scope: []int{i, j}, Values: make([]float64, di*dj)}
	for a := range di {
		for b := range dj {
			ln := 0.0 // A − Ã at (a, b), from its coordinates
			for q := range di - 1 {
				for r := range dj - 1 {
					row, column := m.firstCoordinate[i]+q, m.firstCoordinate[j]+r
					x := m.matrix[row*m.order+column] - s.entry(m.order, row, column)
					ln += m.functions[i][q*di+a] * m.functions[j][r*dj+b] * x
				}
			}
			t.Values[a*dj+b] = math.Exp(ln)
		}
	}
	return t
}
