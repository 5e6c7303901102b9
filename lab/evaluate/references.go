package evaluate

// Experiment "uai": models of the inference competitions, solved exactly, then without the exact
// way.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/lab/bench"
	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

func references() Experiment {
	return Experiment{
		Name: "uai",
		Description: "|Δ ln Z| and the largest error of a marginal on the reference models that are " +
			"solved exactly, without the exact way, under three limits of memory",
		Run:     runReferences,
		Figures: referenceFigures,
		Summary: referenceSummary,
		Tables:  referenceTables,
	}
}

// withoutExact is the system that may not take the exact way: three seconds' worth of flops.
func withoutExact(name string, memory int64) Method {
	return Settings(name, btn.Settings{NoExact: true, Budget: 3e9, Memory: memory})
}

func runReferences(ctx context.Context, o Options) ([]Row, error) {
	if o.Data == "" {
		o.say("uai: skipped: --data (or BTN_DATA) names no folder of reference models")
		return nil, nil
	}
	methods := o.Methods
	if len(methods) == 0 {
		methods = []Method{withoutExact("2 GiB", 0), withoutExact("8 MiB", 8<<20), withoutExact("1 MiB", 1<<20)}
	}
	filters := o.Models
	switch {
	case len(filters) > 0:
	case o.Short:
		filters = []string{"Segmentation_1*"}
	default:
		filters = []string{"uai/*"}
	}

	models, err := bench.Find(o.Data, filters, false)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for k, f := range models {
		at := fmt.Sprintf("%d/%d %s", k+1, len(models), f.Name)
		name := f.Name[strings.LastIndex(f.Name, "/")+1:]
		model, err := observed(f.Path)
		if err != nil {
			o.say(at + ": left out: " + err.Error())
			continue
		}
		exact, err := timed(ctx, Settings("exact", exactSettings), model, true)
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
		if err != nil || exact.Uncertainty != 0 || math.IsInf(exact.LnZ, 0) {
			o.say(fmt.Sprintf("%s: left out: not solved exactly (%v)", at, err))
			continue
		}
		kind, _, _ := strings.Cut(name, "_")
		row := Row{Model: name, Family: kind, Variables: len(model.Domains), Strength: math.NaN(), Step: math.NaN()}
		more, said, err := answers(ctx, row, model, exact, methods, true)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
		o.say(fmt.Sprintf("%s: ln Z = %.6g (%.2f s)%s", at, exact.LnZ, exact.Seconds, said))
	}

	return rows, nil
}

// observed reads a model, with the evidence beside it as factors of one variable.
func observed(path string) (*factorgraph.Model, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := uai.Read(bytes.NewReader(text), uai.Limits{})
	if err != nil {
		return nil, err
	}

	text, err = os.ReadFile(path + ".evid")
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}

	evidence, err := uai.ReadEvidence(bytes.NewReader(text), m.Domains)
	if err != nil {
		return nil, err
	}
	for _, x := range evidence.Hard {
		one := make([]float64, m.Domains[x.Var])
		one[x.Value] = 1
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{x.Var},
			Table: &tensor.Dense{Shape: []int{len(one)}, Data: one},
		})
	}

	return m, nil
}

// referenceFigures draws the errors of all models, sorted: a cumulative count by error.
func referenceFigures(rows []Row) (list []Figure) {
	for _, what := range []struct {
		file, label string
		value       func(Row) float64
	}{{"lnz", "|Δ ln Z| (nats)", ofError}, {"marginals", "largest error of a marginal", func(r Row) float64 {
		return r.Largest
	}}} {
		l := chart.Lines{Title: "Reference models without the exact way: " + what.label,
			X: chart.Axis{Label: "models answered with at most this error"},
			Y: chart.Axis{Label: what.label, Log: true, Floor: 1e-14}}
		for _, g := range groups(rows, func(r Row) string { return r.Method }) {
			l.Curves = append(l.Curves, chart.Curve{Name: g.name, Points: sorted(g.rows, what.value)})
		}
		list = append(list, Figure{Name: "uai-" + what.file, Draw: l.WriteSVG})
	}

	s := chart.Scatter{Title: "Reference models: error against stated uncertainty", Diagonals: []float64{1, 3},
		X: chart.Axis{
			Label: "stated uncertainty of ln Z (nats)",
			Log:   true,
			Floor: 1e-14,
		}, Y: chart.Axis{Label: "|Δ ln Z| (nats)", Log: true, Floor: 1e-14}}
	for _, g := range groups(rows, func(r Row) string { return r.Method }) {
		s.Groups = append(s.Groups, stated(g))
	}
	return append(list, Figure{Name: "uai-uncertainty", Draw: s.WriteSVG})
}

// sorted are the values in ascending sequence, against their number.
func sorted(rows []Row, value func(Row) float64) (list []chart.Point) {
	var values []float64
	for _, r := range rows {
		if v := value(r); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	for k, v := range values {
		list = append(list, chart.Point{X: float64(k + 1), Y: v, Low: v, High: v})
	}
	return list
}

// referenceSummary is a table in Markdown: a line per model.
func referenceSummary(rows []Row) string {
	var b strings.Builder
	for _, g := range groups(rows, func(r Row) string { return r.Method }) {
		fmt.Fprintln(&b, calibrate(g.rows, g.name))
	}
	methods := names(rows, func(r Row) string { return r.Method })
	fmt.Fprintf(&b, "\n| model | exact |")
	for _, m := range methods {
		fmt.Fprintf(&b, " %s |", m)
	}

	fmt.Fprintf(&b, "\n|---|---|%s\n", strings.Repeat("---|", len(methods)))
	for _, g := range groups(rows, func(r Row) string { return r.Model }) {
		fmt.Fprintf(&b, "| %s | %.1f s |", g.name, g.rows[0].ExactSeconds)
		for _, r := range g.rows {
			if r.Failed != "" {
				fmt.Fprint(&b, " failed |")
				continue
			}
			fmt.Fprintf(&b, " %s ± %s, marginals %s, %.1f s |",
				short(r.Error), short(r.Uncertainty), short(r.Largest), r.Seconds)
		}
		fmt.Fprintln(&b)
	}

	return b.String()
}
