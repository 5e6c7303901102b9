//go:build !amd64

package annealing

func setVectors(bool) bool { return false }
