package countspace

// Ops counts arithmetic, for tests that measure how a cost grows and for the flops that
// results report, and may end it. A nil *Ops counts nothing. It is not for use by several goroutines at once.
type Ops struct {
	MulAdds int64 // pairs of coefficients multiplied and added
	// Stop is called about once in 2^16 multiply-adds, where there is one. Once it has returned true, all arithmetic that
	// counts here returns at once, and leaves coefficients at 0: the caller has to throw them away.
	Stop func() bool

	sinceStop int64 // multiply-adds since Stop was called
	isStopped bool  // Stop has returned true
}

// stopInterval is the number of multiply-adds between two calls of Ops.Stop: some tenth of a millisecond.
const stopInterval = 1 << 16

// Add counts n multiply-adds, and calls Stop if stopInterval of them were counted since the last call.
func (o *Ops) Add(n int) {
	if o == nil {
		return
	}
	o.MulAdds += int64(n)
	if o.Stop == nil || o.isStopped {
		return
	}
	if o.sinceStop += int64(n); o.sinceStop >= stopInterval {
		o.sinceStop = 0
		o.isStopped = o.Stop()
	}
}

// done reports whether Stop has returned true, so that the arithmetic has to end.
func (o *Ops) done() bool { return o != nil && o.isStopped }
