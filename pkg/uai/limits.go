// Package uai reads and writes the text formats of the UAI inference competitions: models (MARKOV and BAYES), evidence,
// and the solution files PR (log10 Z) and MAR (marginals).
//
// Nothing is allocated on the word of a header: memory grows with the numbers that were really read, and every count is
// held against Limits first. Errors name the line, the factor and the reason, wrap one of the sentinels below and carry
// fault.BadInput.
package uai

import (
	"cmp"
	"errors"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

var (
	// ErrSyntax: the text is not in the format: a word where a number belongs, an early end, something after the end.
	ErrSyntax = errors.New("syntax error")
	// ErrModel: the text is in the format and says something impossible. It is factorgraph's sentinel.
	ErrModel = factorgraph.ErrModel
	// ErrEvidence: observations out of range, contradictory, or in neither dialect. It is factorgraph's sentinel.
	ErrEvidence = factorgraph.ErrEvidence
	// ErrLimit: larger than the limits of the call.
	ErrLimit = errors.New("over the limit")
)

// Limits bound the models read. The zero value of a field means its default.
type Limits struct {
	Bytes     int64 // of the whole input; default 1 GiB
	Variables int   // default 2^22
	Factors   int   // default 2^23
	Domain    int   // values of one variable; default 2^20
	Legs      int   // variables in all scopes together; default 2^26
	Entries   int   // numbers in all tables together; default 2^27, a GiB of float64

	// Unknown hears of the nodes of a Bayesian network whose tables are unknown in the file (-1, ? or none, in BIF, XMLBIF, NET, DSC and
	// XDSL). Their unknown rows are uniform in the model. If it is nil, such a table is an error.
	Unknown func(node string)
}

// withDefaults returns the limits with defaults in place of zeros.
func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(l.Bytes, 1<<30)
	l.Variables = cmp.Or(l.Variables, 1<<22)
	l.Factors = cmp.Or(l.Factors, 1<<23)
	l.Domain = cmp.Or(l.Domain, 1<<20)
	l.Legs = cmp.Or(l.Legs, 1<<26)
	l.Entries = cmp.Or(l.Entries, 1<<27)
	return l
}
