package btn

// States among sampled components: what posterior samples are made of.

// Picked are states of the variables, each of a bundle of components that follow one another: of n bundles of N components the k-th are the
// components kN/n ≤ c < (k+1)N/n, as far as they are of the part. A state is drawn from its bundle by weight, so that Σ W f(x)/Σ W over the
// bundles, W what a bundle weighs together, is an estimate of the posterior mean of f.
type Picked struct {
	First  int64     `msgpack:"f"` // number of the first bundle
	Ln     []float64 `msgpack:"l"` // ln W by bundle, nats; −Inf for one that weighs nothing and has no state
	Values []int     `msgpack:"v"` // bundle by bundle, a value per variable
}

// Bundles returns the number of the first of n bundles of all components that a part has a share in, and one more than that of the last.
func (p *Sampled) Bundles(n int64) (first, end int64) {
	return p.From * n / p.Along.Of, (p.To*n + p.Along.Of - 1) / p.Along.Of
}

// Bundle returns the components of the k-th of n bundles that are the part's.
func (p *Sampled) Bundle(k, n int64) (from, to int64) {
	of := p.Along.Of
	return max(p.From, (k*of+n-1)/n), min(p.To, ((k+1)*of+n-1)/n)
}
