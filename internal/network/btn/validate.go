package btn

// Validation of a network against the paper's definition of a base tensor network.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrInvalid is wrapped by every error of Validate.
var ErrInvalid = errors.New("btn: not a base tensor network")

// Validate returns an error if n is not a base tensor network by the paper's definition. Every leg must be in exactly one core and in
// exactly one link, so that none is free, and its dimension must agree wherever it appears. There must be a core unless there are no legs.
// The tensors must be valid in themselves, the maps square matrices of their legs' dimensions, and all numbers finite. Every variable must
// point at a link in CP form with one term per value, and no two at the same link.
//
// The error wraps ErrInvalid and names the leg, core, link or variable.
// Cost: the sum of the tensors' stored sizes.
func (n *Network) Validate() error {
	if n == nil {
		return fmt.Errorf("%w: nil network", ErrInvalid)
	}
	for l, d := range n.Dims {
		if d < 1 {
			return fmt.Errorf("%w: leg %d has dimension %d", ErrInvalid, l, d)
		}
	}

	if !n.Scale.IsFinite() {
		return fmt.Errorf("%w: scale is %v", ErrInvalid, n.Scale.Mant)
	}

	switch n.Choice {
	case "", query.CoresAreFactors, query.CoresAreVariables:
	default:
		return fmt.Errorf("%w: choice of cores %q is unknown", ErrInvalid, n.Choice)
	}

	if len(n.Cores) == 0 && len(n.Dims) > 0 {
		return fmt.Errorf("%w: %d legs and no core tensor", ErrInvalid, len(n.Dims))
	}

	for _, check := range []func() error{
		n.validateMaps, n.ValidateCores, n.validateLinks, n.validateVariables, n.validateDirected,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateMaps checks that maps are square matrices of the legs' dimensions with finite entries.
func (n *Network) validateMaps() error {
	if n.Maps == nil {
		return nil
	}
	if len(n.Maps) != len(n.Dims) {
		return fmt.Errorf("%w: %d maps for %d legs", ErrInvalid, len(n.Maps), len(n.Dims))
	}
	for l, m := range n.Maps {
		if m.A == nil {
			continue
		}
		d := n.Dims[l]
		isSquare := len(m.A)/d == d && len(m.A)%d == 0
		if !isSquare {
			return fmt.Errorf("%w: map of leg %d has %d entries, dimension %d needs its square",
				ErrInvalid, l, len(m.A), d)
		}
		for k, a := range m.A {
			if math.IsNaN(a) || math.IsInf(a, 0) {
				return fmt.Errorf("%w: map of leg %d, entry %d is %v", ErrInvalid, l, k, a)
			}
		}
	}
	return nil
}

// ValidateCores checks that every core is a valid tensor, and that every leg is in exactly one core, with its dimension.
func (n *Network) ValidateCores() error {
	owner := newLegOwners(len(n.Dims))
	for c, core := range n.Cores {
		if err := n.validateTensor("core", c, core.Legs, core.T, owner); err != nil {
			return err
		}
	}
	return owner.checkComplete("core")
}

// validateLinks checks that every link is a valid tensor, and that every leg is in exactly one link, with its dimension.
func (n *Network) validateLinks() error {
	owner := newLegOwners(len(n.Dims))
	for j, link := range n.Links {
		if err := n.validateTensor("link", j, link.Legs, link.T, owner); err != nil {
			return err
		}
	}
	return owner.checkComplete("link")
}

// validateTensor checks that t is a valid tensor on legs that exist, have its dimensions, and are in no other core or link. It enters the
// tensor into owner, which has the core or link of every leg, −1 for none. what is "core" or "link", and index is its number.
func (n *Network) validateTensor(
	what string, index int, legs []int, t tensor.Tensor, owner legOwners,
) error {
	if t == nil {
		return fmt.Errorf("%w: %s %d has no tensor", ErrInvalid, what, index)
	}
	if err := tensor.Validate(t); err != nil {
		return fmt.Errorf("%w: %s %d: %w", ErrInvalid, what, index, err)
	}

	dims := t.Dims()
	if len(dims) != len(legs) {
		return fmt.Errorf("%w: %s %d is a tensor of order %d on %d legs",
			ErrInvalid, what, index, len(dims), len(legs))
	}

	for k, l := range legs {
		if l < 0 || l >= len(n.Dims) {
			return fmt.Errorf("%w: %s %d names leg %d, there are %d",
				ErrInvalid, what, index, l, len(n.Dims))
		}
		if owner[l] >= 0 {
			return fmt.Errorf("%w: leg %d is in %s %d and in %s %d",
				ErrInvalid, l, what, owner[l], what, index)
		}
		if dims[k] != n.Dims[l] {
			return fmt.Errorf("%w: %s %d has dimension %d on leg %d, the leg has %d",
				ErrInvalid, what, index, dims[k], l, n.Dims[l])
		}
		owner[l] = index
	}
	return nil
}

// validateVariables checks that every variable has a link of its own with one term per value.
func (n *Network) validateVariables() error {
	isUsed := make([]bool, len(n.Links)) // by link: it is the link of a variable
	for i, v := range n.Variables {
		if v.Domain < 1 {
			return fmt.Errorf("%w: variable %d has %d values", ErrInvalid, i, v.Domain)
		}
		if v.Link < 0 || v.Link >= len(n.Links) {
			return fmt.Errorf("%w: variable %d points at link %d, there are %d",
				ErrInvalid, i, v.Link, len(n.Links))
		}

		cp, isCP := n.Links[v.Link].T.(*tensor.CP)
		if !isCP {
			return fmt.Errorf("%w: variable %d points at link %d, which is not in CP form",
				ErrInvalid, i, v.Link)
		}
		if len(cp.Weights) != v.Domain {
			return fmt.Errorf("%w: variable %d has %d values, link %d has %d terms",
				ErrInvalid, i, v.Domain, v.Link, len(cp.Weights))
		}

		if isUsed[v.Link] {
			return fmt.Errorf("%w: variable %d points at link %d, another variable does too",
				ErrInvalid, i, v.Link)
		}
		isUsed[v.Link] = true
	}
	return nil
}

// validateDirected checks that the links of a directed network are its variables, and that no two cores are conditional probability tables
// of the same variable. The table of a variable is the core that has it on its last leg. It does not check that rows sum to 1.
func (n *Network) validateDirected() error {
	if !n.Directed {
		return nil
	}
	if len(n.Links) != len(n.Variables) || n.Choice != query.CoresAreFactors {
		return fmt.Errorf("%w: it is called directed, and has links that are no variables", ErrInvalid)
	}
	legLink := n.LinkOfLeg()
	tableOf := slices.Repeat([]int{-1}, len(n.Links)) // by link, the core that is its variable's table
	for c, core := range n.Cores {
		if len(core.Legs) == 0 {
			return fmt.Errorf("%w: it is called directed, and core %d has no legs", ErrInvalid, c)
		}
		link := legLink[core.Legs[len(core.Legs)-1]]
		if tableOf[link] >= 0 {
			return fmt.Errorf("%w: it is called directed, and cores %d and %d are tables of one variable", ErrInvalid, tableOf[link], c)
		}
		tableOf[link] = c
	}
	return nil
}

// legOwners has, for every leg, the core or link that has it; −1 if none has.
type legOwners []int

// newLegOwners returns the owners of legs that are in no core or link yet.
func newLegOwners(legs int) legOwners { return slices.Repeat(legOwners{-1}, legs) }

// checkComplete returns an error that names the first leg without an owner, or nil if all legs have one. what is "core" or "link".
func (o legOwners) checkComplete(what string) error {
	for leg, owner := range o {
		if owner < 0 {
			return fmt.Errorf("%w: leg %d is in no %s", ErrInvalid, leg, what)
		}
	}
	return nil
}
