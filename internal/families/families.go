// Package families knows all families of parts: importing it makes their classes known to package btn.
// A family is a room: its parts, how they are written, priced, contracted, and what estimates made of them say.
package families

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/bounding"
	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/families/closed"
	"github.com/basetensor/basetensor/internal/families/counts"
	"github.com/basetensor/basetensor/internal/families/descent"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/families/gradients"
	"github.com/basetensor/basetensor/internal/families/regions"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/truncated"
)

func init() {
	for class, newPart := range map[btn.Class]func() btn.Part{
		btn.ClassRankOne:         func() btn.Part { return new(closed.RankOne) },
		btn.ClassCP:              func() btn.Part { return new(closed.CP) },
		btn.ClassSymmetric:       func() btn.Part { return new(closed.SymmetryRankOne) },
		btn.ClassSymmetryRankOne: func() btn.Part { return new(closed.SymmetryRankOne) },
		btn.ClassCounts:          func() btn.Part { return new(counts.Counts) },
		btn.ClassProduct:         func() btn.Part { return new(exact.Product) },
		btn.ClassElimination:     func() btn.Part { return new(exact.Elimination) },
		btn.ClassSlices:          func() btn.Part { return new(exact.Slices) },
		btn.ClassGroups:          func() btn.Part { return new(exact.Groups) },
		btn.ClassAdjoints:        func() btn.Part { return new(gradients.Adjoints) },
		btn.ClassDescent:         func() btn.Part { return new(descent.Descent) },
		btn.ClassCircuit:         func() btn.Part { return new(circuits.Circuit) },
		btn.ClassCube:            func() btn.Part { return new(circuits.Cube) },
		btn.ClassTruncated:       func() btn.Part { return new(truncated.Truncated) },
		btn.ClassRegions:         func() btn.Part { return new(regions.Regions) },
		btn.ClassSampled:         func() btn.Part { return new(sampled.Sampled) },
		btn.ClassBound:           func() btn.Part { return new(bounding.Bound) },
	} {
		btn.Register(class, newPart)
	}
}
