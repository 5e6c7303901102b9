package region

// What a part adds, as plain numbers: for parts that are computed in one place and added up in another.

// Sums returns Σ α_r ln (Z_r / Z_BP) and Σ α_r (Z_r / Z_BP − 1) over the part's regions, each rounded once.
func (p *Part) Sums() (ln, linear float64) { return p.LnZ.value(), p.Linear.value() }
