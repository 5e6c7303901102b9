package evaluate

// Experiment "time": errors while an answer grows.

import (
	"context"
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

func timeModels(short bool) []instance {
	if short {
		return []instance{
			{family: grids, size: 8, strength: 1, attractive: true},
			{family: complete, size: 10, strength: 1},
		}
	}
	return []instance{
		{family: narrow, strength: 1, attractive: true}, {family: narrow, strength: 1.5},
		{family: regular, size: 100, strength: 1},
		{family: complete, size: 20, strength: 1}, {family: bipartite, size: 14, strength: 1},
	}
}

// titled names a model of the experiment.
func titled(r Row) string { return fmt.Sprintf("%s, Δ=%g", sized(r), r.Strength) }

func runTime(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	budget, bonds := 1e10, []int{2, 4, 8, 16, 32, 64, 128}
	if o.Short {
		budget, bonds = 1e7, bonds[:3]
	}
	for _, x := range timeModels(o.Short) {
		model, err := x.build()
		if err != nil {
			return rows, err
		}
		exact, err := solved(ctx, x, model, false)
		if err != nil {
			return rows, err
		}

		said := fmt.Sprintf("%s: ln Z = %.6g (%.2f s)", x, exact.LnZ, exact.Seconds)
		tracks := []struct {
			name string
			run  func(emit func(suffix string, step float64, o Outcome)) error
		}{
			{"tree", bonded(ctx, model, bonds, alongOneTree)},
			{"sweep", bonded(ctx, model, bonds, sweeping)},
			{"regions", func(emit func(string, float64, Outcome)) error {
				return staged(ctx, model, query.Settings{Method: query.MethodRegions, Budget: budget}, emit)
			}},
			{"system, 256 KiB", func(emit func(string, float64, Outcome)) error {
				return staged(ctx, model, query.Settings{NoExact: true, Budget: budget / 10, Memory: 256 << 10}, emit)
			}},
		}
		for _, t := range tracks {
			start := now()
			err := t.run(func(suffix string, step float64, got Outcome) {
				got.Seconds = now().Sub(start).Seconds()
				r := x.row(len(model.Domains))
				r.Method, r.Step = t.name+suffix, step
				r.answer(got, exact)
				rows = append(rows, r)
				said += fmt.Sprintf("  %s %s (%.2f s)", r.Method, short(r.Error), r.Seconds)
			})
			if err != nil {
				return rows, fmt.Errorf("%s: %s: %w", x, t.name, err)
			}
		}

		o.say(said)
	}

	return rows, nil
}

// staged is the system stage by stage: the answers it would have given as each estimate was complete.
func staged(
	ctx context.Context, m *factorgraph.Model, s query.Settings,
	emit func(suffix string, step float64, o Outcome),
) error {
	net, err := stage.Reparameterise(ctx, m, s)
	if err != nil {
		return err
	}
	queries := []query.Query{{}}
	job, err := stage.Learn(ctx, net, queries, s, nil, nil)
	if err != nil {
		return err
	}

	chunks, ends := stage.Chunks(net, job)
	if len(ends) == 0 {
		ends = []int{len(chunks)} // an answer at once
	}
	var values []btn.UnitValue
	from := 0
	for k, end := range ends {
		for _, units := range chunks[from:end] {
			more, err := stage.Contract(ctx, net, job, stage.Demands(net, queries), units, stage.ContractOptions{Memory: s.Memory})
			if err != nil {
				return err
			}
			values = append(values, more...)
		}

		from = end
		result := stage.AggregateNow("evaluate", job, values)[0]
		o, err := outcomeOf(result)
		if err != nil {
			continue
		}
		suffix := ""
		if n := len(result.Estimates); n > 0 && k < n && result.Estimates[k].Family == query.FamilyRegions &&
			result.Estimates[k].Slices > 1 {
			suffix = " in slices"
		}
		emit(suffix, float64(k+1), o)
		if stage.Settled(job, values) {
			break
		}
	}

	return nil
}

// timeSummary is a line per model and method: the error after so many seconds.
func timeSummary(rows []Row) string {
	var b strings.Builder
	for _, g := range groups(rows, titled) {
		fmt.Fprintf(&b, "%s: |Δ ln Z| (nats) after seconds\n", g.name)
		for _, m := range groups(g.rows, methodOf) {
			fmt.Fprintf(&b, "  %-24s", m.name)
			for _, r := range m.rows {
				fmt.Fprintf(&b, "  %.2g s: %s", r.Seconds, short(r.Error))
			}
			fmt.Fprintln(&b)
		}
	}
	return b.String()
}
