package btn

// States among sampled components: the material of posterior samples.

// Picked are states of the variables, one for each bundle of consecutive components. If N components are divided into n bundles, bundle k
// has the components kN/n ≤ c < (k+1)N/n that belong to the part. Its state is drawn from them by weight. With W the total weight of a
// bundle, Σ W f(x) / Σ W over the bundles estimates the posterior mean of f.
type Picked struct {
	First  int64     `msgpack:"f"` // number of the first bundle
	Ln     []float64 `msgpack:"l"` // by bundle, ln W in nats; −Inf for a bundle that weighs nothing and has no state
	Values []int     `msgpack:"v"` // bundle by bundle, a value per variable
}
