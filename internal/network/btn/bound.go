package btn

// Bounds: parts that are no share of Z.

// BoundValue is an interval of ln Z, in nats, with the network's Scale. −Inf and +Inf are the trivial bounds.
type BoundValue struct {
	Lower float64 `msgpack:"l"`
	Upper float64 `msgpack:"u"`
	// Least bounds ln Z from below if Z is not 0: ln of the product of the least positive entry of every table. nil: not known.
	Least *float64 `msgpack:"p,omitempty"`
}
