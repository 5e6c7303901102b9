package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// sensitivityCmd asks how a probability depends on the numbers of the model.
type sensitivityCmd struct {
	answering
	Of    string  `arg:"" name:"V=X" help:"${sensitivity_of}"`
	Top   int     `help:"How many numbers are listed." default:"20"`
	Range float64 `help:"${sensitivity_range}" default:"0.1"`
}

// Run finds the numbers of the model that move a probability most under each evidence, and prints one result for each.
func (c *sensitivityCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	c.needs = "sensitivity"
	return c.run(ctx, t, common, &question{query: func(_ console.Opener, l *factorgraph.Labels) (q query.Query, err error) {
		if q.Sensitivity, err = c.sensitivity(l); err != nil {
			return q, fault.New(fault.BadInput, "sensitivity: %w", err)
		}
		return q, nil
	}})
}

// sensitivity returns the question.
func (c *sensitivityCmd) sensitivity(l *factorgraph.Labels) (*query.Sensitivity, error) {
	v, err := named.Parse(c.Of)
	if err != nil {
		return nil, err
	}
	e, err := v.Evidence(l)
	if err != nil {
		return nil, err
	}
	if len(e.Hard) != 1 || len(e.Soft) > 0 {
		return nil, errors.New("one value of one variable is needed: lung=yes")
	}
	s := &query.Sensitivity{Variable: e.Hard[0].Var, Value: e.Hard[0].Value, Range: c.Range, Top: c.Top}
	switch {
	case !(s.Range > 0 && s.Range <= 1):
		return nil, fmt.Errorf("--range must be above 0 and at most 1, not %v", s.Range)
	case s.Top < 1 || s.Top > query.MaxTop:
		return nil, fmt.Errorf("--top must be from 1 to %d, not %d", query.MaxTop, s.Top)
	}
	return s, nil
}

// tornadoWidth is the length of the longest bar.
const tornadoWidth = 40

// writeTornado writes a line for each number: the range of P when the number varies, as a bar, and which number it is.
func writeTornado(_ *printer, b *strings.Builder, r *query.Result) {
	s := r.Sensitivity
	if s == nil {
		return
	}
	target := variableLabel(s.Name, s.Variable) + "=" + cmp.Or(s.State, strconv.Itoa(s.Value))
	fmt.Fprintf(b, "%-12sP(%s) = %.6g when a number varies by %.4g %% of itself\n", "sensitivity", target, s.P, 100*s.Range)
	if len(s.Tornado) == 0 {
		fmt.Fprintf(b, "%-12sno number moves it\n", "")
		return
	}

	// the scale of the bars
	low, high := s.P, s.P
	for _, w := range s.Tornado {
		low, high = min(low, w.Low), max(high, w.High)
	}
	column := func(p float64) int {
		if high == low {
			return 0 // no number moves it by a digit
		}
		return int(0.5 + (p-low)/(high-low)*tornadoWidth)
	}

	// a bar from the lowest to the highest P, with a mark at P itself
	for _, w := range s.Tornado {
		bar := []rune(strings.Repeat(" ", tornadoWidth+1))
		for i := column(w.Low); i <= column(w.High); i++ {
			bar[i] = '█'
		}
		if middle := column(s.P); bar[middle] == ' ' {
			bar[middle] = '│'
		}
		fmt.Fprintf(b, "  %.6f %s %.6f  %s = %.4g\n", w.Low, string(bar), w.High, describeNumber(w), w.Theta)
	}
}

// describeNumber names a number of the model: P(child | parents), an entry of a table, or its position in its factor.
func describeNumber(w query.Swing) string {
	if w.Variables == nil {
		return fmt.Sprintf("number %d of factor %d", w.Number, w.Factor)
	}
	var child string
	var conditions []string // the other variables of the table
	for k, v := range w.Variables {
		pair := fmt.Sprintf("%d=%d", v, w.Values[k])
		if w.Names != nil {
			pair = w.Names[k] + "=" + w.States[k]
		}
		if w.Of != nil && v == *w.Of {
			child = pair
		} else {
			conditions = append(conditions, pair)
		}
	}
	switch {
	case child == "":
		return fmt.Sprintf("factor %d at %s", w.Factor, strings.Join(conditions, ", "))
	case len(conditions) == 0:
		return "P(" + child + ")"
	}
	return "P(" + child + " | " + strings.Join(slices.Clip(conditions), ", ") + ")"
}
