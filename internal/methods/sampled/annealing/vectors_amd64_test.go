package annealing

// setVectors switches vectors on, where there are any, or off. It returns the previous setting.
func setVectors(on bool) bool {
	was := vectors
	vectors = on && hasVectors
	return was
}
