// Package regions is the method of estimates by regions, for large sparse networks: the value of belief propagation, corrected by exact
// contractions of regions. It proposes regions of growing size, which package region contracts.
package regions

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Regions is a part of a plan: some of the regions of B in the gauge of belief propagation, or the value of belief propagation alone.
type Regions struct {
	Kind string `msgpack:"kind"` // bethe, windows, balls
	Size int    `msgpack:"size"` // of the regions; 0 for kind bethe
	// The part has the share of all regions from From to To, in units of 1/WholeShare. Their number is only known under the evidence.
	From int64 `msgpack:"from"`
	To   int64 `msgpack:"to"`
	// Updates bounds the updates of belief propagation if the plan has no messages; 0: package bp does.
	Updates int64 `msgpack:"updates,omitempty"`
}

// WholeShare is the value of To that stands for all regions.
const WholeShare = int64(1) << 20

// Class implements Part.
func (*Regions) Class() btn.Class { return btn.ClassRegions }

// About implements btn.Part. It describes the result, and says that parts are combined by the log-linear rule.
func (p *Regions) About() btn.About {
	return btn.About{Result: query.EstimateResult{Family: query.FamilyRegions, Kind: p.Kind, Size: p.Size}, Rule: btn.LogLinear}
}

// Fits implements Part. It checks the size and the range of regions, but not whether they suit the network.
func (p *Regions) Fits(*btn.Network) error {
	switch {
	case p.Size < 0:
		return btn.Misfit("regions of size %d", p.Size)
	case p.From < 0 || p.To < p.From || p.To > WholeShare:
		return btn.Misfit("regions from %d to %d of %d", p.From, p.To, WholeShare)
	}
	return nil
}
