package stage

import (
	"strings"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Queries returns the queries with names turned into positions and textual evidence parsed, and
// checked by query.Check. Targets ask for marginals. It does not change asked. It calls labels, if
// at all, once. Errors come from query.Check and labels, and from named.Evidence and
// Labels.Variable with the query's position and the field.
func Queries(domains []int, labels func() (*factorgraph.Labels, error), asked []query.Query) ([]query.Query, error) {
	queries := make([]query.Query, len(asked))
	r := resolver{labels: labels}
	for i, q := range asked {
		if len(q.Switches) > 0 {
			return nil, fault.New(fault.BadInput, "query %d: switches: they follow from do, and are not asked for", i)
		}
		if field, err := r.resolve(domains, &q); err != nil {
			return nil, fault.New(fault.CodeOf(err), "query %d: %s: %w", i, field, err)
		}
		q.Marginals = q.Marginals || len(q.Targets) > 0
		queries[i] = q
	}
	return queries, query.Check(domains, queries)
}

// resolver has the labels of a model from when the first query needs them.
type resolver struct {
	labels func() (*factorgraph.Labels, error)
	known  *factorgraph.Labels
}

// need gets the labels.
func (r *resolver) need() (err error) {
	if r.known == nil {
		r.known, err = r.labels()
	}
	return err
}

// resolve turns names and texts of q into positions.
func (r *resolver) resolve(domains []int, q *query.Query) (field string, err error) {
	switch {
	case q.Evid == "":
	case !q.Evidence.IsEmpty():
		return "", nil // query.Check refuses it
	case named.Inline(q.Evid):
		if err = r.need(); err == nil {
			q.Evidence, err = named.Evidence(r.known, q.Evid)
		}
	default:
		q.Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), domains)
	}
	if err != nil {
		return "evid", err
	}
	q.Evid = ""

	if q.Named == nil {
		return "", nil
	}
	if err := r.need(); err != nil {
		return "named", err
	}
	field, err = named.Resolve(r.known, q)
	return "named." + field, err
}
