package structured

// A fit written out: by values, with the pairs that deviate as tables of the rest.

import (
	"context"
	"math"
	"slices"
)

// roundings bounds those of a logarithm: of a table's entry, of its share of a field, and of the statistics.
const roundings = 8

// fit writes an approximation out by values, and the pairs apart from it as tables of the rest; nil where no order eliminates the
// rest in small tables.
func (m *interactions) fit(ctx context.Context, s *spectrum, apart map[[2]int]bool, off float64) (*Fit, error) {
	values := len(m.field)
	f := &Fit{Domains: m.domains, Ln: m.ln.Value(), Field: m.fields(), Lambda: slices.Clone(s.lambda)}
	f.LnError = off + math.Ldexp(roundings*m.size, -53)
	f.Vectors = make([]float64, len(s.lambda)*values)
	for k, lambda := range s.lambda {
		v := f.Vectors[k*values:][:values]
		for i, d := range m.domains {
			for p := range d - 1 {
				w := s.w[k*m.order+m.base[i]+p]
				for a := range d {
					v[m.at[i]+a] += m.basis[i][p*d+a] * w
				}
			}
		}
		for x, y := range v {
			f.Field[x] -= lambda / 2 * y * y
		}
	}
	pairs := make([][2]int, 0, len(apart))
	for p := range apart {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, p := range pairs {
		f.Rest = append(f.Rest, m.deviation(f, s, p))
	}
	f.Rest = append(f.Rest, m.hard...)
	if len(m.leaves) > 0 {
		f.Variables, f.Leaves = m.variables, m.leaves
	}

	var err error
	if f.Order, err = f.order(ctx); err != nil {
		return nil, err
	}
	if _, err := newProgram(f); err != nil {
		return nil, nil
	}
	return f, nil
}

// fields are the fields by value, rounded.
func (m *interactions) fields() []float64 {
	out := make([]float64, len(m.field))
	for x := range out {
		out[x] = m.field[x].Value()
	}
	return out
}

// deviation is the table e^{A − Ã} of a pair; of one whose tables have zeros e^{−Ã}, as they stand in the rest themselves, and e^{A − Ã}
// of its other tables.
func (m *interactions) deviation(f *Fit, s *spectrum, p [2]int) Table {
	i, j := p[0], p[1]
	di, dj := m.domains[i], m.domains[j]
	t := Table{Scope: []int{i, j}, Values: make([]float64, di*dj)}
	for a := range di {
		for b := range dj {
			ln := 0.0
			for q := range di - 1 {
				for r := range dj - 1 {
					x := m.matrix[(m.base[i]+q)*m.order+m.base[j]+r] - s.at(m.order, m.base[i]+q, m.base[j]+r)
					ln += m.basis[i][q*di+a] * m.basis[j][r*dj+b] * x
				}
			}
			t.Values[a*dj+b] = math.Exp(ln)
		}
	}
	return t
}
