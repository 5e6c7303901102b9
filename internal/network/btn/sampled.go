package btn

// Sampled components: a random decomposition, whose mean over the draws is Z.

// Weights are the weights of sampled components.
type Weights struct {
	// Ln are ln w of every component in sequence, nats, −Inf for 0: Z is their mean.
	Ln []float64 `msgpack:"l"`
	// LnMost is ln of an upper bound of these components' weights, nats; none where they are unbounded.
	LnMost *float64 `msgpack:"m,omitempty"`
	// Share[offset(v)+a] is Σ e^{Ln−Top} over the components where variable v has value a, Squares the same with e^{2(Ln−Top)}; Domains
	// are the variables' domains. A slice counts by its share of value a. None where marginals were not asked for.
	Top     float64   `msgpack:"t"`
	Domains []int     `msgpack:"d,omitempty"`
	Share   []float64 `msgpack:"s,omitempty"`
	Squares []float64 `msgpack:"q,omitempty"`
	Picked  *Picked   `msgpack:"x,omitempty"` // nil where states were not asked for
}

// Sample is what a part says of its components before they are drawn.
type Sample struct {
	Components int64
	Spread     float64 // the variance of a weight over the square of its mean, as a pilot saw it
	Missed     float64 // the share of draws that may weigh almost nothing, which a pilot may not have seen
	Modes      bool    // a pilot has found modes that chains from other starts miss
}
