//go:build !amd64

package annealing

// Elsewhere the portable loop runs, with the same bits.

const vectors = false

// sweepVector is never called, since vectors is false.
func sweepVector(*sweepArgs) {}

// fieldsVector is never called, since vectors is false.
func fieldsVector(*fieldArgs) {}

// crowdVector is never called, since vectors is false.
func crowdVector(*crowdArgs) {}

// powersVector is never called, since vectors is false.
func powersVector(*powerArgs) {}

// sumOutVector is never called, since vectors is false.
func sumOutVector(*upArgs) {}

// drawVector is never called, since vectors is false.
func drawVector(*downArgs) {}
