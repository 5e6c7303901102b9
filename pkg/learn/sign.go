package learn

// Entries of both signs: what the exact way cannot measure, said beforehand.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// signWarnings warns where a factor has entries below 0: terms of both signs may cancel within a contraction, and the
// cancellation that answers report is that between components only. Tables under maps other than the identity are not
// looked at, their signs are the maps'. Evidence changes nothing here. Linear time.
func signWarnings(net *btn.Network) []string {
	for _, m := range net.Maps {
		if m.A != nil {
			return nil
		}
	}
	negative := func(t tensor.Tensor) bool {
		below := func(x float64) bool { return x < 0 }
		switch t := t.(type) {
		case *tensor.Dense:
			return slices.ContainsFunc(t.Data, below)
		case *tensor.Symmetric:
			return slices.ContainsFunc(t.Values.Mant, below)
		}
		return false
	}
	for _, core := range net.Cores {
		if negative(core.T) {
			return []string{signedWarning}
		}
	}
	for _, link := range net.Links {
		if negative(link.T) {
			return []string{signedWarning}
		}
	}
	return nil
}

const signedWarning = "factors have entries below 0: digits that cancel within the contraction are not counted"
