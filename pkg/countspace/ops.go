package countspace

// Ops counts arithmetic, for tests that measure how a cost grows and for the flops that
// results report. A nil *Ops counts nothing. It is not for use by several goroutines at once.
type Ops struct {
	MulAdds int64 // pairs of coefficients multiplied and added
}

// Add counts n multiply-adds.
func (o *Ops) Add(n int) {
	if o != nil {
		o.MulAdds += int64(n)
	}
}
