package btn

// States among sampled components: the material of posterior samples.

// Picked are states of the variables, each of a bundle of components that follow one another: of n bundles of N components the k-th are the
// components kN/n ≤ c < (k+1)N/n, as far as they are of the part. A state is drawn from its bundle by weight, so that Σ W f(x)/Σ W over
// the bundles, W the total weight of a bundle, is an estimate of the posterior mean of f.
type Picked struct {
	First  int64     `msgpack:"f"` // number of the first bundle
	Ln     []float64 `msgpack:"l"` // ln W by bundle, nats; −Inf for one that weighs nothing and has no state
	Values []int     `msgpack:"v"` // bundle by bundle, a value per variable
}
