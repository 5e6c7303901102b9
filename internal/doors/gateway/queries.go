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

// queries returns the queries as they travel. Errors are bad input. They name the field, and the query if a list has it.
func queries(all []Query, isListed bool, l *factorgraph.Labels) (out []query.Query, err error) {
	place := func(i int) string {
		if !isListed {
			return ""
		}
		return fmt.Sprintf("queries[%d].", i)
	}
	var origins []int // by query, which one it was made of
	for i := range all {
		q := &all[i]
		more, err := q.Queries(l, q.Label, len(out))
		if err != nil {
			return nil, bad("%s%w", place(i), err)
		}
		if q.Evid != "" {
			if q.Evidence != nil || q.Event != nil {
				return nil, bad("%sevid: it excludes evidence and event", place(i))
			}
			if more[0].Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), l.Domains()); err != nil {
				return nil, bad("%sevid: %w", place(i), err)
			}
		}
		out = append(out, more...)
		origins = append(origins, slices.Repeat([]int{i}, len(more))...)
	}
	if err := query.Check(l.Domains(), out); err != nil {
		var wrong interface {
			Field() (query int, field string, reason error)
		}
		if !errors.As(err, &wrong) {
			return nil, bad("%w", err)
		}
		i, field, reason := wrong.Field()
		return nil, bad("%s%s: %s", place(origins[i]), field, byName(reason.Error(), l))
	}
	return out, nil
}

// position is a variable in the error of a query that travels.
var position = regexp.MustCompile(`\bvariable (\d+)\b`)

// byName returns the text of such an error with the names of the variables.
func byName(text string, l *factorgraph.Labels) string {
	return position.ReplaceAllStringFunc(text, func(found string) string {
		digits := strings.TrimPrefix(found, "variable ")
		v, err := strconv.Atoi(digits)
		if err != nil || v >= len(l.Domains()) || l.OfVariable(v) == digits {
			return found
		}
		return fmt.Sprintf("variable %q", l.OfVariable(v))
	})
}
