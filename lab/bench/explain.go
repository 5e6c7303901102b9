package bench

// Most probable assignments beside toulbar2 (toulbar2.github.io), in one thread each.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Explanation is one run of a solver on one model.
type Explanation struct {
	Model     string  `csv:"model"`
	Variables int     `csv:"variables"`
	Solver    string  `csv:"solver"`
	Budget    float64 `csv:"budget_s"`
	CPU       float64 `csv:"cpu_s"`     // user and system
	Best      float64 `csv:"ln_weight"` // of the best assignment, nats; NaN: none
	Bound     float64 `csv:"ln_bound"`  // ln weight above which there is none, nats; NaN: none
	Optimal   bool    `csv:"optimal"`   // proved
	Note      string  `csv:"note"`      // why there is no assignment
}

// bound is the ln weight above which the run says that there is none: +Inf where it says nothing.
func (e Explanation) bound() float64 {
	if math.IsNaN(e.Bound) {
		return math.Inf(1)
	}
	return e.Bound
}

// The solvers.
const (
	Own     = "btn"
	Toulbar = "toulbar2"
)

// Explain runs the solvers on every model with each budget in turn, until the optimum is proved. Programs maps solvers to their paths; one
// that is missing does not run. Every row is handed to each as soon as it is there.
func Explain(ctx context.Context, programs map[string]string, budgets []time.Duration, models []Model, each func(Explanation)) error {
	scratch, err := os.MkdirTemp("", "btn-explain-")
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	defer os.RemoveAll(scratch)
	for _, m := range models {
		for _, solver := range []string{Own, Toulbar} {
			for _, budget := range budgets {
				if programs[solver] == "" {
					break
				}
				e := Explanation{Model: m.Name, Variables: m.Variables, Solver: solver, Budget: budget.Seconds()}
				e.Best, e.Bound = math.NaN(), math.NaN()
				if solver == Own {
					e.own(ctx, programs[solver], budget, m)
				} else if err := e.toulbar(ctx, programs[solver], budget, m, scratch); err != nil {
					return err
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if each(e); e.Optimal {
					break
				}
			}
		}
	}
	return nil
}

// slack is how much longer than its budget a solver may run.
func slack(budget time.Duration) time.Duration { return 4*budget + time.Minute }

func (e *Explanation) own(ctx context.Context, program string, budget time.Duration, m Model) {
	args := []string{"env", "GOMAXPROCS=1", program, "explain", "--json", "--threads=1", "--budget=" + budget.String(), "--", m.Path}
	p := runProcess(ctx, args, slack(budget))
	e.CPU = math.Round(1000*p.CPU.Seconds()) / 1000
	var a struct {
		Status string   `json:"status"`
		Error  *failure `json:"error"`
		MPE    *struct {
			LnWeight *float64 `json:"ln_weight"`
			LnBound  *float64 `json:"ln_bound"`
			Optimal  *bool    `json:"optimal"`
		} `json:"mpe"`
	}
	line, _, _ := bytes.Cut(p.Stdout, []byte("\n"))
	switch err := json.Unmarshal(line, &a); {
	case err != nil:
		e.Note = strings.Join(strings.Fields(p.Reason+" "+p.Stderr), " ")
	case a.Status != query.StatusOK && a.Error != nil:
		e.Note = a.Error.Code
	case a.MPE != nil && a.MPE.LnWeight != nil:
		e.Best = *a.MPE.LnWeight
		if e.Optimal = a.MPE.LnBound == nil; !e.Optimal {
			e.Bound = *a.MPE.LnBound
			e.Optimal = a.MPE.Optimal != nil && *a.MPE.Optimal
		}
	}
	if e.Optimal {
		e.Bound = e.Best
	}
}

// toulbar runs toulbar2, whose costs are rounded −ln of weights by its precision of seven digits: a cost of 10^7 is a nat. The weight of
// its assignment is computed here.
func (e *Explanation) toulbar(ctx context.Context, program string, budget time.Duration, m Model, scratch string) error {
	model, evidence, solution := filepath.Join(scratch, "m.uai"), filepath.Join(scratch, "m.uai.evid"), filepath.Join(scratch, "solution")
	if err := os.Remove(solution); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Wrap(fault.Infrastructure, err)
	}
	network, observed, err := copied(m.Path, model, evidence)
	if err != nil {
		return err
	}
	seconds := strconv.Itoa(int(math.Ceil(budget.Seconds())))
	p := runProcess(ctx, []string{program, model, evidence, "-timer=" + seconds, "-w=" + solution}, slack(budget))
	e.CPU = math.Round(1000*p.CPU.Seconds()) / 1000
	if text, err := os.ReadFile(solution); err == nil {
		e.Best = lnWeight(network, observed, strings.Fields(string(text)))
	}
	cost, bound, optimal := costs(p.Stdout)
	if e.Optimal = optimal; math.IsNaN(e.Best) {
		e.Note = "no assignment"
	} else if math.IsInf(e.Best, -1) {
		e.Best, e.Optimal, e.Note = math.NaN(), false, "its assignment has weight 0"
	} else if e.Bound = e.Best + (cost-bound)*1e-7; optimal {
		e.Bound = e.Best
	}
	return nil
}

var (
	solutionLine = regexp.MustCompile(`(?m)^(?:New solution|Optimum): (\d+) `)
	gapLine      = regexp.MustCompile(`(?m)^(?:Optimality gap|Initial lower and upper bounds): \[(\d+), \d+\]`)
	optimumLine  = regexp.MustCompile(`(?m)^Optimum: \d+ `)
)

// costs are the last cost and the last lower bound that toulbar2 has printed; NaN where there is none.
func costs(printed []byte) (best, bound float64, optimal bool) {
	last := func(line *regexp.Regexp) float64 {
		found := line.FindAllSubmatch(printed, -1)
		if len(found) == 0 {
			return math.NaN()
		}
		v, err := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
		if err != nil {
			return math.NaN()
		}
		return v
	}
	return last(solutionLine), last(gapLine), optimumLine.Match(printed)
}

// copied writes a model without compression, and its evidence or that there is none, and returns both.
func copied(from, model, evidence string) (parsed *factorgraph.Model, observed map[int]int, err error) {
	f, text, err := open(from)
	if err != nil {
		return nil, nil, fault.Wrap(fault.BadInput, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(text)
	if err != nil {
		return nil, nil, fault.Wrap(fault.BadInput, err)
	}
	parsed, err = uai.Read(bytes.NewReader(raw), uai.Limits{})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", from, err)
	}
	line := "0\n"
	if beside, err := os.ReadFile(strings.TrimSuffix(from, packed) + ".evid"); err == nil {
		e, err := uai.ReadEvidence(bytes.NewReader(beside), parsed.Domains)
		if err != nil {
			return nil, nil, fmt.Errorf("%s.evid: %w", from, err)
		}
		observed = map[int]int{}
		line = strconv.Itoa(len(e.Hard))
		for _, o := range e.Hard {
			observed[o.Var] = o.Value
			line += fmt.Sprintf(" %d %d", o.Var, o.Value)
		}
	}
	err = errors.Join(os.WriteFile(model, raw, 0o600), os.WriteFile(evidence, []byte(line), 0o600))
	return parsed, observed, fault.Wrap(fault.Infrastructure, err)
}

// lnWeight of an assignment, nats: the sum of the logarithms of its entries. NaN for text that is none, or against the evidence.
func lnWeight(m *factorgraph.Model, observed map[int]int, text []string) float64 {
	values := make([]int, len(text))
	for i, word := range text {
		v, err := strconv.Atoi(word)
		if x, ok := observed[i]; err != nil || ok && x != v {
			return math.NaN()
		}
		values[i] = v
	}
	sum := 0.0
	for _, f := range m.Factors {
		at := 0
		for _, v := range f.Scope {
			if v >= len(values) || values[v] < 0 || values[v] >= m.Domains[v] {
				return math.NaN()
			}
			at = at*m.Domains[v] + values[v]
		}
		sum += math.Log(f.Table.(*tensor.Dense).Data[at])
	}
	return sum
}

// contest is a model with the last rows of both solvers, and their rows of every budget.
type contest struct {
	model string
	runs  map[string][]Explanation
}

func contests(rows []Explanation) (list []contest) {
	for _, e := range rows {
		if len(list) == 0 || list[len(list)-1].model != e.Model {
			list = append(list, contest{e.Model, map[string][]Explanation{}})
		}
		runs := list[len(list)-1].runs
		runs[e.Solver] = append(runs[e.Solver], e)
	}
	return list
}

// last run of a solver: the proof, or that of the largest budget.
func (c contest) last(solver string) Explanation {
	if runs := c.runs[solver]; len(runs) > 0 {
		return runs[len(runs)-1]
	}
	return Explanation{Best: math.NaN(), Bound: math.NaN()}
}

const (
	leastCPU = 0.1  // below it times are not compared
	sameNats = 1e-3 // toulbar2 rounds costs
)

// SummaryOfExplanations compares the solvers in Markdown: proofs and their times, and what is known of models that are not proved.
func SummaryOfExplanations(rows []Explanation) string {
	var b strings.Builder
	both, only, neither, bounds := []float64{}, map[string][]string{}, []string{}, 0
	as, models, wrong := 0, contests(rows), []string(nil)
	for _, c := range models {
		own, other := c.last(Own), c.last(Toulbar)
		if math.IsNaN(own.Bound) {
			bounds++
		}
		if own.Best > other.bound()+sameNats || other.Best > own.bound()+sameNats || own.Best > own.bound()+sameNats {
			wrong = append(wrong, c.model)
		}
		switch {
		case own.Optimal && other.Optimal:
			both = append(both, max(own.CPU, leastCPU)/max(other.CPU, leastCPU))
		case own.Optimal:
			only[Own] = append(only[Own], c.model)
		case other.Optimal:
			only[Toulbar] = append(only[Toulbar], c.model)
		default:
			neither = append(neither, c.model)
			if own.Best >= other.Best-sameNats || math.IsNaN(other.Best) && !math.IsNaN(own.Best) {
				as++
			}
		}
	}
	slices.Sort(both)
	fmt.Fprintf(&b, "%d models: %d proved by both", len(models), len(both))
	if n := len(both); n > 0 {
		fmt.Fprintf(&b, " (CPU time btn/toulbar2, of %g s at least: median %.2f, quartiles %.2f and %.2f, largest %.1f)", leastCPU,
			both[n/2], both[n/4], both[3*n/4], both[n-1])
	}
	fmt.Fprintf(&b, ", %d by btn alone, %d by toulbar2 alone, %d by neither (with the largest budget btn's best is as good or better: %d); "+
		"without a bound by btn: %d\n",
		len(only[Own]), len(only[Toulbar]), len(neither), as, bounds)
	for _, part := range []struct {
		head   string
		models []string
	}{{"a weight above a bound", wrong}, {"btn alone", only[Own]}, {"toulbar2 alone", only[Toulbar]}, {"neither", neither}} {
		if len(part.models) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", part.head, strings.Join(part.models, ", "))
		}
	}

	b.WriteString("\n| model | btn, CPU s | toulbar2, CPU s | ln weight | toulbar2's less | gap | toulbar2's gap |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|\n")
	number := func(v float64, format string) string {
		if math.IsNaN(v) {
			return "–"
		}
		return fmt.Sprintf(format, v)
	}
	proof := func(e Explanation) string {
		if e.Optimal {
			return fmt.Sprintf("%.2f", e.CPU)
		}
		return "–"
	}
	for _, c := range models {
		own, other := c.last(Own), c.last(Toulbar)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", c.model, proof(own), proof(other), number(own.Best, "%.4f"),
			number(own.Best-other.Best, "%.3g"), number(own.Bound-own.Best, "%.3g"), number(other.Bound-other.Best, "%.3g"))
	}
	return b.String()
}

// SeriesOfExplanations are the times of the proofs by solver.
func SeriesOfExplanations(rows []Explanation) (list []Series) {
	for _, solver := range []string{Own, Toulbar} {
		s := Series{Name: solver}
		for _, c := range contests(rows) {
			if len(c.runs[solver]) == 0 {
				continue
			}
			if s.Total++; c.last(solver).Optimal {
				s.Times = append(s.Times, c.last(solver).CPU)
			}
		}
		if slices.Sort(s.Times); s.Total > 0 {
			list = append(list, s)
		}
	}
	return list
}
