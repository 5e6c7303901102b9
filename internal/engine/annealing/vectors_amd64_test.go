package annealing

// setVectors switches vectors on, where there are any, or off. It returns what was before.
func setVectors(on bool) bool {
	was := vectors
	vectors = on && hasVectors
	return was
}
