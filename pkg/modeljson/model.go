// Package modeljson reads and writes the native model file: JSON for models beyond the UAI format, namely CP, symmetric and symmetry-CP
// factors, names of variables and of their values, and values beyond the range of float64. schemas/model.schema.json describes it; Decode
// also checks rules that a schema cannot state (lengths against domains, duplicate keys).
package modeljson

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Version is the value of the field basetensor_model.
const Version = 1

var (
	// ErrSyntax: not JSON, or not of the shape the schema describes.
	ErrSyntax = errors.New("not a model file")
	// ErrModel: of the right shape and impossible. It is factorgraph's sentinel.
	ErrModel = factorgraph.ErrModel
	// ErrVersion: a version of the format that this program does not read.
	ErrVersion = errors.New("version of the format")
	// ErrLimit: larger than the limits of the call.
	ErrLimit = errors.New("over the limit")
)

// Limits bound the models read, so that memory is at most a small multiple of the file and the named levels it
// asks for. The zero value of a field means its default.
type Limits struct {
	Bytes  int64 // of the file; default 256 MiB
	Domain int   // values of one variable; default 2^20
	Levels int   // values of all legs of symmetric and symmetry-CP factors together; default 2^26
}

// withDefaults returns the limits with defaults in place of zeros.
func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(l.Bytes, 256<<20)
	l.Domain = cmp.Or(l.Domain, 1<<20)
	l.Levels = cmp.Or(l.Levels, 1<<26)
	return l
}

// file is the document. Pointers and raw fields tell a missing field from an empty one.
type file struct {
	Version     *int       `json:"basetensor_model"`
	Description string     `json:"description,omitempty"`
	Bayes       bool       `json:"bayes,omitempty"`
	Variables   []variable `json:"variables"`
	Factors     []factor   `json:"factors"`

	places places
}

// places are where the items of the two lists begin in the text.
type places struct{ variables, factors []int }

// variable is a variable of the document.
type variable struct {
	Name   string   `json:"name,omitempty"`
	Domain *int     `json:"domain,omitempty"` // the number of states where there are states
	States []string `json:"states,omitempty"`
	// Display is a second name, which another format's program shows; Place is x and y, downwards, where it draws the variable.
	Display string    `json:"display,omitempty"`
	Place   []float64 `json:"place,omitempty"`
}

// factor has exactly one of the five forms.
type factor struct {
	Scope      *scope      `json:"scope"`
	Dense      *dense      `json:"dense,omitempty"`
	CP         *cp         `json:"cp,omitempty"`
	Symmetric  *symmetric  `json:"symmetric,omitempty"`
	SymmetryCP *symmetryCP `json:"symmetry_cp,omitempty"`
	LowRank    *lowRank    `json:"low_rank,omitempty"` // read as cp
}

// dense is a table.
type dense struct {
	Values *table `json:"values"` // last scope variable fastest
}

// cp is a sum of products of a vector for each variable.
type cp struct {
	Weights decimal.Floats     `json:"weights"`
	Vectors [][]decimal.Floats `json:"vectors"` // per scope variable, per term, per value; null for the identity
}

// lowRank is e^{weight·s²/2}, s the sum of its vectors' entries.
type lowRank struct {
	Weight  *decimal.Number  `json:"weight"`
	Vectors []decimal.Floats `json:"vectors"` // per scope variable, per value
}

// symmetric is a function of the numbers of variables at each level.
type symmetric struct {
	Levels levels `json:"levels"`
	counts
}

// symmetryCP is a sum of terms, each a symmetric factor times a vector for each variable.
type symmetryCP struct {
	Levels levels `json:"levels"`
	Terms  []term `json:"terms"`
}

// term is a term of symmetryCP.
type term struct {
	Alpha decimal.Number `json:"alpha"`
	counts
	Vectors []decimal.Floats `json:"vectors,omitempty"` // per scope variable; null for all ones; absent for all of them
}

// counts is a value per count vector in one of three notations.
type counts struct {
	Values    decimal.Floats `json:"values,omitempty"`
	LogValues []*float64     `json:"log_values,omitempty"` // nats; null for the value 0
	Scaled    *scaledList    `json:"scaled,omitempty"`
}

// scaledList is Mantissas[i]·2^Exponents[i]: exact, of any range and sign.
type scaledList struct {
	Mantissas decimal.Floats `json:"mantissas"`
	Exponents []int64        `json:"exponents"`
}

// syntaxError returns an error that wraps ErrSyntax.
func syntaxError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrSyntax}, args...)...)
}

// modelError returns an error that wraps ErrModel.
func modelError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrModel}, args...)...)
}
