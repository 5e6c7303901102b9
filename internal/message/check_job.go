package message

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// CheckJob checks a decoded job against the network it belongs to, as far as lengths go: nothing that a contraction indexes
// is out of range. Its error wraps ErrInvalid and has the code bad_input. Time linear in the job's size.
func CheckJob(n *btn.Network, j *btn.Job) error {
	for i, d := range j.Decompositions {
		if err := CheckDecomposition(n, d); err != nil {
			return fault.Wrap(fault.BadInput, under(fmt.Sprintf("decompositions[%d]", i), err))
		}
	}
	for i, a := range j.Assignments {
		if a.Error == nil && (a.Decomposition < 0 || a.Decomposition >= len(j.Decompositions)) {
			return fault.Wrap(fault.BadInput, invalid(fmt.Sprintf("assignments[%d]", i), "decomposition %d of %d", a.Decomposition, len(j.Decompositions)))
		}
		if err := checkJointOf(n, a.Joint); err != nil {
			return fault.Wrap(fault.BadInput, under(fmt.Sprintf("assignments[%d]", i), err))
		}
	}
	return nil
}

// checkJointOf checks the variables of a joint marginal against those of a network.
func checkJointOf(n *btn.Network, set []int) error {
	if len(set) == 0 {
		return nil
	}
	domains := make([]int, len(n.Variables))
	for v := range domains {
		domains[v] = n.Variables[v].Domain
	}
	return checkJoint(set, domains)
}

// CheckDecomposition does for one decomposition what CheckJob does for a job.
func CheckDecomposition(n *btn.Network, d *btn.Decomposition) error {
	if d.Rotations != nil && len(d.Rotations) != len(n.Dims) {
		return invalid("rotations", "%d for %d legs", len(d.Rotations), len(n.Dims))
	}
	for leg, o := range d.Rotations {
		if o != nil && !isSquare(o, n.Dims[leg]) {
			return invalid(fmt.Sprintf("rotations[%d]", leg), "%d entries for %d values", len(o), n.Dims[leg])
		}
	}
	if len(d.Alpha) != len(d.Components) {
		return invalid("alpha_m", "%d for %d components", len(d.Alpha), len(d.Components))
	}
	if err := checkGrowth(n, d); err != nil {
		return under("growth", err)
	}
	if err := checkParts(n, d.Parts); err != nil {
		return err
	}
	var box []int
	for i := range d.Components {
		c := &d.Components[i]
		place := fmt.Sprintf("components[%d]", i)
		if c.R != nil {
			if err := checkRankOne(c.R, n.Dims); err != nil {
				return under(place, err)
			}
		}
		if c.CP != nil && !slices.Equal(c.CP.Shape, n.Dims) {
			return under(place, invalid("cp", "%d modes that are not the network's %d legs", len(c.CP.Shape), len(n.Dims)))
		}
		if c.Class != btn.ClassSymmetric && c.Class != btn.ClassSymmetryRankOne {
			continue
		}
		if box == nil {
			if err := checkLevels(d.Levels, n.Dims); err != nil {
				return under("levels", err)
			}
			box = d.Levels.Shape()
		}
		if !slices.Equal(c.S.Shape, box) {
			return under(place, invalid("box", "%v, the levels give %v", c.S.Shape, box))
		}
	}
	return nil
}

// checkParts checks the parts of a decomposition, each against its own part of the network.
func checkParts(n *btn.Network, parts []btn.Part) error {
	if len(parts) == 0 {
		return nil
	}
	if err := n.CheckParts(parts); err != nil {
		return invalid("parts", "%v", err)
	}
	for p, part := range parts {
		sub, _ := n.Sub(part.Links)
		if err := CheckDecomposition(sub, part.Decomposition); err != nil {
			return under(fmt.Sprintf("parts[%d]", p), err)
		}
	}
	return nil
}
