package gateway

import (
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

// queries returns the queries as they travel. Errors are bad input and name query and field.
func queries(all []Query, l *factorgraph.Labels) (out []query.Query, err error) {
	for i := range all {
		q := &all[i]
		more, err := q.Queries(l, q.Label, len(out))
		if err != nil {
			return nil, bad("queries[%d].%w", i, err)
		}
		if q.Evid != "" {
			if q.Evidence != nil || q.Event != nil {
				return nil, bad("queries[%d].evid: it excludes evidence and event", i)
			}
			if more[0].Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), l.Domains()); err != nil {
				return nil, bad("queries[%d].evid: %w", i, err)
			}
		}
		out = append(out, more...)
	}
	if err := query.Check(l.Domains(), out); err != nil {
		return nil, bad("%w", err)
	}
	return out, nil
}
