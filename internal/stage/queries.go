package stage

import (
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Parametric reports whether one of the queries is: see btn.Parametric.
func Parametric(queries []query.Query) bool { return slices.ContainsFunc(queries, btn.Parametric) }

// Queries returns the queries with evidence given as text parsed, and checked by query.Check. Targets
// ask for marginals. It does not change asked. Errors are those of query.Check, and those of uai.ReadEvidence with the
// query's position.
func Queries(domains []int, asked []query.Query) ([]query.Query, error) {
	queries := make([]query.Query, len(asked))
	for i, q := range asked {
		if q.Evid != "" {
			var err error
			if q.Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), domains); err != nil {
				return nil, fault.New(fault.CodeOf(err), "query %d: %w", i, err)
			}
			q.Evid = ""
		}
		q.Marginals = q.Marginals || len(q.Targets) > 0
		queries[i] = q
	}
	return queries, query.Check(domains, queries)
}
