package region

// Marginals from the regions' own, and along the trees outside all regions.

// marginals returns P(x_i) ∝ P_BP(x_i) Π_{r∋i} (P_r(x_i)/P_BP(x_i))^{α_r}.
func (p *Prepared) marginals(parts []*Part) [][]float64 {
	return nil
}
