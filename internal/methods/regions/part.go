// Package regions is the family of estimates by regions, for large sparse networks: belief propagation's value, corrected by exact
// contractions of regions around it. It proposes regions of growing size; package engine/region contracts them.
package regions

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Regions are some of the regions of B in the BP gauge.
type Regions struct {
	Kind string `msgpack:"kind"` // bethe, windows, balls
	Size int    `msgpack:"size"` // of the regions; 0 for kind bethe
	// From and To are a share of the regions, in units of 1/WholeShare: their number is known under evidence only.
	From int64 `msgpack:"from"`
	To   int64 `msgpack:"to"`
	// Updates bounds the updates of belief propagation, if planning has not ended with its messages; 0: package bp does.
	Updates int64 `msgpack:"updates,omitempty"`
}

// WholeShare is all regions.
const WholeShare = int64(1) << 20

// Class implements Part.
func (*Regions) Class() btn.Class { return btn.ClassRegions }

// About implements btn.Part.
func (p *Regions) About() btn.About {
	return btn.About{Result: query.EstimateResult{Family: query.FamilyRegions, Kind: p.Kind, Size: p.Size}, Rule: btn.LogLinear}
}

// Fits implements Part.
func (p *Regions) Fits(*btn.Network) error {
	switch {
	case p.Size < 0:
		return btn.Misfit("regions of size %d", p.Size)
	case p.From < 0 || p.To < p.From || p.To > WholeShare:
		return btn.Misfit("regions from %d to %d of %d", p.From, p.To, WholeShare)
	}
	return nil
}
