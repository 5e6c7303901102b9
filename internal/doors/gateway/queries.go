package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Query is one query. Variables and values are names or positions.
type Query struct {
	named.Query
	Evid  string `json:"evid,omitempty"`  // the text of a .uai.evid file in place of evidence
	Label string `json:"label,omitempty"` // a name for the evidence, which the result repeats
}

// queriesOf returns the queries as they travel. Errors are bad input. They name the field, and the query if isListed:
// if the request has a list of queries.
func queriesOf(all []Query, isListed bool, labels *factorgraph.Labels) (out []query.Query, err error) {
	place := func(i int) string {
		if !isListed {
			return ""
		}
		return fmt.Sprintf("queries[%d].", i)
	}
	var origins []int // by query that travels, the position of the one in the request that it was made of
	for i := range all {
		q := &all[i]
		made, err := q.Queries(labels, q.Label, len(out))
		if err != nil {
			return nil, badRequest("%s%w", place(i), err)
		}
		if q.Evid != "" {
			if q.Evidence != nil || q.Event != nil {
				return nil, badRequest("%sevid: it excludes evidence and event", place(i))
			}
			if made[0].Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), labels.Domains()); err != nil {
				return nil, badRequest("%sevid: %w", place(i), err)
			}
		}
		out = append(out, made...)
		origins = append(origins, slices.Repeat([]int{i}, len(made))...)
	}

	// check them; an error names the query of the request, and variables by name
	if err := query.Check(labels.Domains(), out); err != nil {
		var ofField interface {
			Field() (query int, field string, reason error)
		}
		if !errors.As(err, &ofField) {
			return nil, badRequest("%w", err)
		}
		i, field, reason := ofField.Field()
		return nil, badRequest("%s%s: %s", place(origins[i]), field, nameVariables(reason.Error(), labels))
	}
	return out, nil
}

// variablePosition matches a variable in the error of a query that travels.
var variablePosition = regexp.MustCompile(`\bvariable (\d+)\b`)

// nameVariables returns the text of an error with the names of variables in place of their positions.
func nameVariables(text string, labels *factorgraph.Labels) string {
	return variablePosition.ReplaceAllStringFunc(text, func(found string) string {
		digits := strings.TrimPrefix(found, "variable ")
		v, err := strconv.Atoi(digits)
		if err != nil || v >= len(labels.Domains()) || labels.OfVariable(v) == digits {
			return found
		}
		return fmt.Sprintf("variable %q", labels.OfVariable(v))
	})
}
