package btn

import (
	"github.com/basetensor/basetensor/pkg/query"
)

// Questions and answers are in package query; the stages use them under these names.
type (
	CoreChoice     = query.CoreChoice
	MapKind        = query.MapKind
	Method         = query.Method
	Settings       = query.Settings
	Result         = query.Result
	Run            = query.Run
	ErrorInfo      = query.ErrorInfo
	Certificate    = query.Certificate
	Bounds         = query.Bounds
	EstimateResult = query.EstimateResult
	Joint          = query.Joint
	Cost           = query.Cost
	Propagation    = query.Propagation
	Family         = query.Family
)

const (
	CoresAreFactors   = query.CoresAreFactors
	CoresAreVariables = query.CoresAreVariables
	MapIdentity       = query.MapIdentity
	MapOrthogonal     = query.MapOrthogonal
	MapBP             = query.MapBP
	MapGiven          = query.MapGiven
	MethodAuto        = query.MethodAuto
	MethodExact       = query.MethodExact
	MethodSymmetryCP  = query.MethodSymmetryCP
	MethodTruncated   = query.MethodTruncated
	MethodRegions     = query.MethodRegions
	MethodCircuit     = query.MethodCircuit
	MethodSampled     = query.MethodSampled
	DefaultMemory     = query.DefaultMemory
	DefaultBudget     = query.DefaultBudget
	StatusOK          = query.StatusOK
	StatusError       = query.StatusError
	FamilySweep       = query.FamilySweep
	FamilyTree        = query.FamilyTree
	FamilyRegions     = query.FamilyRegions
	FamilySampled     = query.FamilySampled
)
