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

// queriesOf returns the queries of a request in the form in which they are sent to the workers; a query with events
// becomes several. Errors are bad input and name the field. isListed says that the request has a list of queries: then
// errors name the query too.
func queriesOf(queries []Query, isListed bool, labels *factorgraph.Labels) (forWorkers []query.Query, err error) {
	place := func(i int) string {
		if !isListed {
			return ""
		}
		return fmt.Sprintf("queries[%d].", i)
	}
	var origins []int // origins[j] is the position in queries of the query that forWorkers[j] was made from
	for i := range queries {
		source := &queries[i]
		sent, err := source.Queries(labels, source.Label, len(forWorkers))
		if err != nil {
			return nil, badRequest("%s%w", place(i), err)
		}
		if source.Evid != "" {
			if source.Evidence != nil || source.Event != nil {
				return nil, badRequest("%sevid: it excludes evidence and event", place(i))
			}
			// Without an event, one query was made of it.
			if sent[0].Evidence, err = uai.ReadEvidence(strings.NewReader(source.Evid), labels.Domains()); err != nil {
				return nil, badRequest("%sevid: %w", place(i), err)
			}
		}
		forWorkers = append(forWorkers, sent...)
		origins = append(origins, slices.Repeat([]int{i}, len(sent))...)
	}

	// check them; an error names the query of the request, and variables by name
	if err := query.Check(labels.Domains(), forWorkers); err != nil {
		var ofField interface {
			Field() (query int, field string, reason error)
		}
		if !errors.As(err, &ofField) {
			return nil, badRequest("%w", err)
		}
		i, field, reason := ofField.Field()
		return nil, badRequest("%s%s: %s", place(origins[i]), field, nameVariables(reason.Error(), labels))
	}
	return forWorkers, nil
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
