package btn

// Bounds: parts that are no share of Z.

// BoundValue is an interval of ln Z, nats, Scale included; −Inf and +Inf are the trivial bounds.
type BoundValue struct {
	Lower float64 `msgpack:"l"`
	Upper float64 `msgpack:"u"`
	// Least bounds ln Z from below unless Z is 0: ln of the product of the least positive entries. nil: not known.
	Least *float64 `msgpack:"p,omitempty"`
}
