package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/setting"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/query"
)

// allSettings returns the settings of all methods, and of the choice among them.
func allSettings() []setting.Setting {
	return slices.Concat(plan.Named, methods.Named)
}

// methodsCmd lists the methods and their settings.
type methodsCmd struct{}

// method is a value of --method.
type method struct {
	name query.Method
	help string
}

// methodHelps describes the methods, in the sequence in which they are listed.
var methodHelps = []method{
	{query.MethodAuto, "exact where it fits --memory and takes no more than --budget is worth and 1e12 flops, else truncated, or regions " +
		"where that does not fit"},
	{query.MethodExact, "elimination, a contraction tree in slices, or a closed form"},
	{query.MethodTruncated, "truncated legs with a growing bond"},
	{query.MethodRegions, "regions around belief propagation"},
	{query.MethodSampled, "a random decomposition, with a standard error and bounds"},
	{query.MethodCircuit, "exact, an arithmetic circuit found by search, for models of many zeros"},
	{query.MethodSymmetryCP, "the learned decomposition"},
}

// Run prints the methods, then the settings of --set.
func (c *methodsCmd) Run(t *console.Terminal) error {
	w := tabwriter.NewWriter(t.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "--method\t")
	for _, m := range methodHelps {
		fmt.Fprintf(w, "%s\t%s\n", m.name, m.help)
	}
	fmt.Fprintln(w, "\n--set\tdefault\tread by")
	for _, s := range allSettings() {
		readers := "all"
		if len(s.Methods) > 0 {
			readers = strings.Trim(fmt.Sprint(s.Methods), "[]")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, cmp.Or(s.Default, "-"), readers, s.Help)
	}
	return w.Flush()
}
