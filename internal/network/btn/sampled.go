package btn

// Sampled components: a random decomposition, whose mean over the draws is Z.

// Weights are the weights of sampled components.
type Weights struct {
	// Ln has ln w of every component in sequence, in nats, −Inf for w = 0. Z is the mean of w.
	Ln []float64 `msgpack:"l"`
	// LnMost is ln of an upper bound of these components' weights, in nats; nil if they are unbounded.
	LnMost *float64 `msgpack:"m,omitempty"`
	// Share[offset(v)+a] is Σ e^{Ln−Top} over the components in which variable v has value a, with offset(v) the sum of the domains of
	// the variables before v. Squares is the same with e^{2(Ln−Top)}. A component that is a slice, and so has no single state, counts by
	// its share of value a. Domains are the variables' domains. All three are nil if marginals were not asked for.
	Top     float64   `msgpack:"t"`
	Domains []int     `msgpack:"d,omitempty"`
	Share   []float64 `msgpack:"s,omitempty"`
	Squares []float64 `msgpack:"q,omitempty"`
	Picked  *Picked   `msgpack:"x,omitempty"` // nil if states were not asked for
}

// Sample describes the components of a part before they are drawn.
type Sample struct {
	Components int64
	Spread     float64 // the variance of a weight over the square of its mean, as a pilot measured it
	Missed     float64 // the share of draws that may weigh almost nothing, which a pilot may not have seen
	Modes      bool    // a pilot has found modes that chains from other starts miss
}
