//go:build !amd64

package annealing

// Elsewhere the portable loop runs, with the same bits.

const vectors = false

func sweepVector(*sweepArgs)  {}
func fieldsVector(*fieldArgs) {}
func crowdVector(*crowdArgs)  {}
func powersVector(*powerArgs) {}
func sumOutVector(*upArgs)    {}
func drawVector(*downArgs)    {}
