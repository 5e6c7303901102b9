package btn

// Sampled components: a random decomposition, whose mean over the draws is Z.

// Weights are what sampled components weigh.
type Weights struct {
	// Ln are ln w of every component in sequence, nats, −Inf for 0: Z is their mean.
	Ln []float64 `msgpack:"l"`
	// LnMost is ln of what no weight of these components can exceed, nats; none where nothing bounds them.
	LnMost *float64 `msgpack:"m,omitempty"`
	// Share[offset(v)+a] is Σ e^{Ln−Top} over the components where variable v has value a, Squares the same with e^{2(Ln−Top)}; Domains
	// are those of the variables. A slice counts by the share that a has of it. None where marginals were not asked for.
	Top     float64   `msgpack:"t"`
	Domains []int     `msgpack:"d,omitempty"`
	Share   []float64 `msgpack:"s,omitempty"`
	Squares []float64 `msgpack:"q,omitempty"`
	Picked  *Picked   `msgpack:"x,omitempty"` // nil where states were not asked for
}
