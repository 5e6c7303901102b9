package countspace

// Ops counts arithmetic, for tests that measure how a cost grows and for the flops that
// results report, and may end it. A nil *Ops counts nothing. It is not for use by several goroutines at once.
type Ops struct {
	MulAdds int64 // pairs of coefficients multiplied and added
	// Stop is called about once in 2^16 multiply-adds, where there is one. Once it has returned true, all arithmetic that
	// counts here returns at once, and leaves coefficients at 0: the caller has to throw them away.
	Stop func() bool

	since   int64 // Stop was called
	stopped bool
}

// lookEvery is the number of multiply-adds between two calls of Ops.Stop: some tenth of a millisecond.
const lookEvery = 1 << 16

// Add counts n multiply-adds.
func (o *Ops) Add(n int) {
	if o == nil {
		return
	}
	o.MulAdds += int64(n)
	if o.Stop == nil || o.stopped {
		return
	}
	if o.since += int64(n); o.since >= lookEvery {
		o.since = 0
		o.stopped = o.Stop()
	}
}

// done reports whether the arithmetic shall end.
func (o *Ops) done() bool { return o != nil && o.stopped }
