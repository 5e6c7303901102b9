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
	Models, Queries      int
	Exact, Zeros, Ratios int
	Marginals, Joints    int
	By                   map[string]int    // exact answers by the method asked for
	Refused              map[string]int    // by method and code
	Estimates            map[string]*share // by method
	Violations           map[string]int    // by class
	SlowestName          string
	Slowest              float64 // seconds
}

// share counts estimates of one kind.
type share struct {
	all, stated, within, ofZero int
}

// statedFactor is the largest ratio of an error to its stated uncertainty that counts as kept.
const statedFactor = 3

// estimateFloor is rounding that no estimate is blamed for, relative to ln Z.
const estimateFloor = 1e-12

// Count adds one case.
func (y *Tally) Count(c *Case, truth []Truth, o Outcome, found []Violation) {
	if y.Refused == nil {
		y.By, y.Refused, y.Estimates, y.Violations = map[string]int{}, map[string]int{}, map[string]*share{}, map[string]int{}
	}
	y.Models++
	y.Queries += len(c.Queries)
	if s := o.Took.Seconds(); s > y.Slowest {
		y.Slowest, y.SlowestName = s, c.Name
	}
	for _, v := range found {
		y.Violations[v.Class]++
	}

	if o.Err != nil {
		y.Refused[fmt.Sprintf("%s, the whole request: %s",
			c.Settings.Method, fault.CodeOf(o.Err))] += len(c.Queries)
	}
	for q := range o.Results {
		if q < len(truth) {
			y.result(c, &truth[q], &o.Results[q])
		}
	}
}

// result counts one result.
func (y *Tally) result(c *Case, t *Truth, r *query.Result) {
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
		y.By[string(c.Settings.Method)]++
	default:
		y.estimate(t, r)
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

// estimate counts an estimate, and whether the truth is within its stated uncertainty.
func (y *Tally) estimate(t *Truth, r *query.Result) {
	s := y.Estimates[string(r.Method)]
	if s == nil {
		s = &share{}
		y.Estimates[string(r.Method)] = s
	}
	s.all++
	if t.Z.IsZero() {
		s.ofZero++
	}
	if r.Uncertainty == nil || r.LogZ == nil {
		return
	}
	s.stated++
	if math.Abs(*r.LogZ-t.LnZ) <= statedFactor**r.Uncertainty+estimateFloor*max(1, math.Abs(t.LnZ)) {
		s.within++
	}
}

// Total is the number of violations.
func (y *Tally) Total() int {
	n := 0
	for _, k := range y.Violations {
		n += k
	}
	return n
}

// Print writes the counts.
func (y *Tally) Print(w io.Writer) {
	fmt.Fprintf(w, "  models %d, queries %d: exact %d, zero %d", y.Models, y.Queries, y.Exact, y.Zeros)
	fmt.Fprintf(w, "; with marginals %d, joints %d, ratios %d\n", y.Marginals, y.Joints, y.Ratios)
	for _, k := range byCount(y.By) {
		fmt.Fprintf(w, "  exact, %s: %d\n", k, y.By[k])
	}
	for _, k := range slices.Sorted(maps.Keys(y.Estimates)) {
		s := y.Estimates[k]
		fmt.Fprintf(w, "  estimates, %s: %d, stated %d, within %d× what they state %d (%.2f "+
			"%%); of an impossible event %d\n",
			k, s.all, s.stated, statedFactor, s.within, 100*float64(s.within)/float64(max(1, s.stated)), s.ofZero)
	}
	for _, k := range byCount(y.Refused) {
		fmt.Fprintf(w, "  refused, %s: %d\n", k, y.Refused[k])
	}
	fmt.Fprintf(w, "  slowest %.2f s: %s\n", y.Slowest, y.SlowestName)
	for _, k := range byCount(y.Violations) {
		fmt.Fprintf(w, "  VIOLATED, %s: %d\n", k, y.Violations[k])
	}
	fmt.Fprintf(w, "  violations %d\n", y.Total())
}

// byCount lists keys, the largest count first.
func byCount(counts map[string]int) []string {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return keys
}
