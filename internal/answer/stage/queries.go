package stage

import (
	"strings"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Queries returns a copy of the original queries in which names are replaced by positions, textual evidence is parsed, and queries with
// targets ask for marginals. It returns an error if the result does not pass query.Check, or if a name or a text is wrong; the error then
// names the query and the field. domains are the numbers of values of the variables. labels loads their names. It is called once, or not
// at all if no query has names.
func Queries(domains []int, labels func() (*factorgraph.Labels, error), original []query.Query) ([]query.Query, error) {
	queries := make([]query.Query, len(original))
	r := resolver{load: labels}
	for i, q := range original {
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

// resolver turns names into positions. It loads the labels of the model when the first query needs them.
type resolver struct {
	load   func() (*factorgraph.Labels, error)
	labels *factorgraph.Labels // nil until loaded
}

// loadOnce loads the labels unless it has done so before.
func (r *resolver) loadOnce() (err error) {
	if r.labels == nil {
		r.labels, err = r.load()
	}
	return err
}

// resolve turns the textual evidence and the names of q into positions. domains are the numbers of values of the variables. If it fails,
// field is the name of the field that is wrong. A query that has evidence in both forms is left as it is, for query.Check to refuse.
func (r *resolver) resolve(domains []int, q *query.Query) (field string, err error) {
	switch {
	case q.Evid == "": // no textual evidence
	case !q.Evidence.IsEmpty():
		return "", nil // evidence in both forms
	case named.Inline(q.Evid):
		if err = r.loadOnce(); err == nil {
			q.Evidence, err = named.Evidence(r.labels, q.Evid)
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
	if err := r.loadOnce(); err != nil {
		return "named", err
	}
	field, err = named.Resolve(r.labels, q)
	return "named." + field, err // without an error, field means nothing
}
