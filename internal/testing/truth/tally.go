package truth

// Counts over many cases.

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Tally counts the results of cases. The zero value is ready.
type Tally struct {
	Models, Queries   int                       // cases and their queries
	Exact, Zeros      int                       // results with an exact ln Z, and with Z = 0
	Ratios            int                       // results with a ratio
	Marginals, Joints int                       // results with marginals, and with a joint marginal
	ExactBy           map[string]int            // exact results by the method asked for
	Refused           map[string]int            // queries without an answer, by method and error code
	Estimates         map[string]*estimateCount // estimates by their method
	Violations        map[string]int            // by class
	SlowestName       string                    // the case that took longest
	Slowest           float64                   // its time in seconds
}

// estimateCount counts the estimates of one method.
type estimateCount struct {
	all    int
	stated int // those that state an uncertainty
	within int // those whose error is at most statedFactor times that
	ofZero int // those where the true Z is 0
}

// statedFactor is the largest ratio of an error to its stated uncertainty at which the statement counts as true.
const statedFactor = 3

// estimateFloor is the error, relative to ln Z, that is allowed to every estimate beside its uncertainty, for rounding.
const estimateFloor = 1e-12

// Count adds one case with its truth, its outcome and its violations.
func (y *Tally) Count(c *Case, truth []Truth, o Outcome, violations []Violation) {
	if y.Refused == nil {
		y.ExactBy, y.Refused = map[string]int{}, map[string]int{}
		y.Estimates, y.Violations = map[string]*estimateCount{}, map[string]int{}
	}
	y.Models++
	y.Queries += len(c.Queries)
	if s := o.Took.Seconds(); s > y.Slowest {
		y.Slowest, y.SlowestName = s, c.Name
	}
	for _, v := range violations {
		y.Violations[v.Class]++
	}

	if o.Err != nil {
		y.Refused[fmt.Sprintf("%s, the whole request: %s",
			c.Settings.Method, fault.CodeOf(o.Err))] += len(c.Queries)
	}
	for q := range o.Results {
		if q < len(truth) {
			y.countResult(c, &truth[q], &o.Results[q])
		}
	}
}

// countResult adds the result of one query: as refused, zero, exact or estimated, and by what it has beside ln Z.
func (y *Tally) countResult(c *Case, t *Truth, r *query.Result) {
	switch {
	case r.Status != query.StatusOK:
		if r.Error != nil {
			y.Refused[fmt.Sprintf("%s: %s", c.Settings.Method, r.Error.Code)]++
		}
		return
	case r.Zero:
		y.Zeros++
		return
	case r.Exact:
		y.Exact++
		y.ExactBy[string(c.Settings.Method)]++
	default:
		y.countEstimate(t, r)
	}

	if r.Ratio != nil {
		y.Ratios++
	}
	if r.Marginals != nil {
		y.Marginals++
	}
	if r.Joint != nil {
		y.Joints++
	}
}

// countEstimate adds an estimate, and whether its error is within statedFactor times the uncertainty that it states.
func (y *Tally) countEstimate(t *Truth, r *query.Result) {
	count := y.Estimates[string(r.Method)]
	if count == nil {
		count = &estimateCount{}
		y.Estimates[string(r.Method)] = count
	}
	count.all++
	if t.Z.IsZero() {
		count.ofZero++
	}
	if r.Uncertainty == nil || r.LogZ == nil {
		return
	}
	count.stated++
	if math.Abs(*r.LogZ-t.LnZ) <= statedFactor**r.Uncertainty+estimateFloor*max(1, math.Abs(t.LnZ)) {
		count.within++
	}
}

// Total returns the number of violations.
func (y *Tally) Total() int {
	n := 0
	for _, k := range y.Violations {
		n += k
	}
	return n
}

// Print writes the counts to w as lines of text.
func (y *Tally) Print(w io.Writer) {
	fmt.Fprintf(w, "  models %d, queries %d: exact %d, zero %d", y.Models, y.Queries, y.Exact, y.Zeros)
	fmt.Fprintf(w, "; with marginals %d, joints %d, ratios %d\n", y.Marginals, y.Joints, y.Ratios)
	for _, k := range keysByCount(y.ExactBy) {
		fmt.Fprintf(w, "  exact, %s: %d\n", k, y.ExactBy[k])
	}
	for _, k := range slices.Sorted(maps.Keys(y.Estimates)) {
		s := y.Estimates[k]
		fmt.Fprintf(w, "  estimates, %s: %d, stated %d, within %d× what they state %d (%.2f "+
			"%%); of an impossible event %d\n",
			k, s.all, s.stated, statedFactor, s.within, 100*float64(s.within)/float64(max(1, s.stated)), s.ofZero)
	}
	for _, k := range keysByCount(y.Refused) {
		fmt.Fprintf(w, "  refused, %s: %d\n", k, y.Refused[k])
	}
	fmt.Fprintf(w, "  slowest %.2f s: %s\n", y.Slowest, y.SlowestName)
	for _, k := range keysByCount(y.Violations) {
		fmt.Fprintf(w, "  VIOLATED, %s: %d\n", k, y.Violations[k])
	}
	fmt.Fprintf(w, "  violations %d\n", y.Total())
}

// keysByCount lists the keys of counts, the largest count first, equal ones by name.
func keysByCount(counts map[string]int) []string {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return keys
}
