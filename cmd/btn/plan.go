package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/questions"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/learned"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// planCmd predicts the cost of an answer, without computing one.
type planCmd struct {
	requestFlags
	questionFlags
	Within time.Duration `help:"${plan_within}" default:"8s" placeholder:"D"`
	NATS   string        `name:"nats" help:"NATS server of a registered model." placeholder:"URL"`
	JSON   bool          `name:"json" help:"Print one JSON object per query."`
	Why    bool          `help:"Also list the ways that were asked, their prices or refusals, and the rules that decided."`

	AsNATS connect.NATS `embed:"" group:"connection"`
}

// forecast is the predicted cost of a query.
type forecast struct {
	Model    string `json:"model"`
	Evidence string `json:"evidence_file,omitempty"`
	shape
	Exact      *query.Cost  `json:"exact"` // null: closed form, or none within the budget
	Memory     int64        `json:"memory"`
	Fits       bool         `json:"fits"`
	Unpriced   bool         `json:"unpriced,omitempty"`     // there was no time to price the exact way
	ClosedForm int          `json:"closed_form_components"` // 0: none looked for or found
	LearnFlops *float64     `json:"learn_flops"`            // null where there was no time to build the network
	Choice     query.Method `json:"choice"`
	Why        string       `json:"why"`
	Components int          `json:"components"`
	Growth     string       `json:"growth,omitempty"`     // the estimates of an approximate answer, and their cost
	Simplified string       `json:"simplified,omitempty"` // the effect of simplification, where a tree follows it
	// Offers are what the choice was among, with --why.
	Offers      []proposal.Offer `json:"offers,omitempty"`
	closed      string           // the price of the closed form, in words
	description string           // the forecast for people
}

// Run prints the predicted cost of answering, per query. The time for the first one counts from the beginning of the command.
func (c *planCmd) Run(ctx context.Context, t *console.Terminal) error {
	until := t.Began.Add(c.Within)
	p, err := c.readInput(ctx, t, until)
	if err != nil {
		return err
	}

	for i, q := range p.queries {
		if i > 0 {
			until = time.Now().Add(c.Within)
		}
		f, err := c.forecast(ctx, p, q, until)
		if err != nil {
			return err
		}
		if c.JSON {
			if err := json.NewEncoder(t.Out).Encode(f); err != nil {
				return err
			}
			continue
		}

		if i > 0 {
			fmt.Fprintln(t.Out)
		}
		fmt.Fprint(t.Out, f.description)
	}

	return nil
}

// planInput is the input of planning.
type planInput struct {
	model   *factorgraph.Model
	queries []query.Query
	net     *btn.Network // nil: there was no time to make it
}

// readInput reads the model and the queries, and makes the network until a time.
func (c *planCmd) readInput(ctx context.Context, t *console.Terminal, until time.Time) (p planInput, err error) {
	// model and queries
	until = until.Add(c.lateness()) // a command that is not finished may end so late
	p, err = runUntil(ctx, until, func(ctx context.Context) (p planInput, err error) {
		if p.model, p.queries, err = c.load(ctx, t, natsFlag{serverFlags: serverFlags{c.NATS, c.AsNATS}}, c.question()); err == nil {
			p.model, p.queries, err = questions.Intervene(p.model, p.queries)
		}
		return p, err
	})
	if errors.Is(err, errSlow) {
		return p, fault.New(fault.Deadline, "reading the model took all of --within %s", c.Within)
	}
	if err != nil {
		return p, err
	}

	// network
	p.net, err = c.makeNetwork(ctx, p.model, until)
	if p.net != nil {
		for _, w := range p.net.Warnings {
			fmt.Fprintf(t.Err, "btn: %s\n", w)
		}
	}
	return p, err
}

// makeNetwork makes a model's network. It returns nil if that takes until the given time.
func (c *planCmd) makeNetwork(ctx context.Context, m *factorgraph.Model, until time.Time) (*btn.Network, error) {
	net, err := runUntil(ctx, until, func(ctx context.Context) (*btn.Network, error) {
		return stage.Reparameterise(ctx, m, c.settings())
	})
	if errors.Is(err, errSlow) {
		return nil, nil
	}
	return net, err
}

// lateness returns how long beyond --within a command may take that is not finished.
func (c *planCmd) lateness() time.Duration { return c.Within/4 + console.Patience }

// Validate refuses values that the flag types let through; kong calls it.
func (c *planCmd) Validate() error {
	if c.Within <= 0 {
		return fmt.Errorf("--within must be above 0, not %s", c.Within)
	}
	return c.validate(&c.requestFlags)
}

// errSlow is the end of the time for one part of planning.
var errSlow = errors.New("not priced in the time that --within leaves")

// runUntil runs a step until a time. It returns errSlow if the step takes longer.
func runUntil[T any](ctx context.Context, until time.Time, step func(context.Context) (T, error)) (T, error) {
	inner, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	value, err := console.RunPromptly(inner, func() (T, error) { return step(inner) })
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = errSlow
	}
	return value, err
}

// assign plans a demand until a time. It returns errSlow if that takes longer. The search for a plan has three quarters of the time, and
// the rest is for what follows it. It remembers no plans.
func (c *planCmd) assign(
	ctx context.Context, until time.Time, net *btn.Network, d btn.Demand, s query.Settings,
) ([]btn.Assignment, error) {
	timeLeft := time.Until(until)
	if timeLeft <= 0 {
		return nil, errSlow
	}
	return runUntil(ctx, until, func(ctx context.Context) ([]btn.Assignment, error) {
		return plan.Assign(proposal.WithPlanningEnd(ctx, time.Now().Add(timeLeft*3/4)), net, []btn.Demand{d}, s, nil, nil)
	})
}

// forecast finds the price of an exact answer and, if the settings lead to another method, the price of that method's answer. What has
// no price by until is marked so.
func (c *planCmd) forecast(ctx context.Context, p planInput, q query.Query, until time.Time) (*forecast, error) {
	s := c.settings()
	f := &forecast{
		Model: c.Model, Evidence: q.EvidenceFile, shape: shapeOf(p.model), Memory: s.Memory, Choice: query.MethodExact,
		Components: 1,
	}
	if p.net == nil {
		f.Unpriced, f.Choice, f.Why, f.Components = true, s.Method, errSlow.Error(), 0
		f.describe()
		return f, nil
	}

	// the price of the exact way, within half of the time, then that of the choice
	learning := learned.LearningWork(s)
	f.LearnFlops = &learning
	var exactOffers, choiceOffers proposal.Offers // the ways that were weighed, which the planner notes in the context's list
	if err := c.priceExact(proposal.WithOffers(ctx, &exactOffers), p.net, q, f, until.Add(-time.Until(until)/2)); err != nil {
		return nil, err
	}
	if err := c.priceChoice(proposal.WithOffers(ctx, &choiceOffers), p.net, q, f, until); err != nil {
		return nil, err
	}

	// what the choice was among
	if f.Offers = choiceOffers.List(); f.Offers == nil { // the exact way was chosen
		f.Offers = exactOffers.List()
	}
	if !c.Why {
		f.Offers = nil
	}
	f.describe()
	return f, nil
}

// priceExact sets in f what an exact answer costs, also if the settings have another method.
func (c *planCmd) priceExact(
	ctx context.Context, net *btn.Network, q query.Query, f *forecast, until time.Time,
) error {
	// plan it
	settings := c.settings()
	settings.Method = query.MethodExact // its own cost, though auto may choose otherwise
	demand := btn.Demand{Evidence: q.Evidence, Want: btn.Want{
		Marginals: q.Marginals || len(q.Targets) > 0,
		Targets:   q.Targets,
		Joint:     q.Joint,
	}}
	assignments, err := c.assign(ctx, until, net, demand, settings)
	if errors.Is(err, errSlow) {
		f.Unpriced, f.Why = true, "the exact way was "+err.Error()
		return nil
	}
	if err != nil {
		return err
	}

	// its price, or why it has none
	assignment := assignments[0] // of the only demand
	if assignment.Error != nil && assignment.Error.Code != fault.OverBudget {
		return fault.New(assignment.Error.Code, "%s", assignment.Error.Message)
	}
	f.setExact(&assignment, settings)

	// the effect of simplification, if a contraction tree follows it
	class := btn.ClassElimination
	if f.Exact != nil {
		class = assignment.Plan.Estimates[0].Parts[0].Class()
	}
	if class != btn.ClassElimination && class != btn.ClassJunction {
		plannedNet, plannedDemand := stage.PlannedNetwork(net, demand, &assignment, nil) // nil: no results of others to use
		f.Simplified, err = runUntil(ctx, until.Add(c.lateness()), func(ctx context.Context) (string, error) {
			return describeSimplified(ctx, plannedNet, plannedDemand)
		})
		if err != nil && !errors.Is(err, errSlow) { // if it is slow, the forecast does without it
			return err
		}
	}
	return nil
}

// setExact sets what an exact answer costs by its assignment, a plan with its cost. If the assignment has an error, which is then that no
// plan is within the budget, the exact answer has no price.
func (f *forecast) setExact(assignment *btn.Assignment, settings query.Settings) {
	switch {
	case assignment.Error != nil:
		f.Why = assignment.Error.Message
	case assignment.Cost == nil: // a closed form is a sum of components, and needs no contraction that has a cost
		f.ClosedForm = assignment.Plan.PartCount()
		f.Components, f.Fits = f.ClosedForm, true
		f.Why = fmt.Sprintf("the base tensor has a closed form of %s", countText(float64(f.ClosedForm), "component"))
		if cost := assignment.Plan.Estimates[0].Cost; cost.Flops > 0 {
			f.closed = fmt.Sprintf(" in count space, %.3g flops, peak %s", cost.Flops, config.FormatBytes(cost.Bytes))
		}
	default:
		f.Exact, f.Components = assignment.Cost, assignment.Plan.PartCount()
		f.Fits = assignment.Cost.Flops <= proposal.AutoFlopLimit(settings)
		f.Why = fmt.Sprintf("it takes %s of %s",
			config.FormatBytes(assignment.Cost.Bytes), config.FormatBytes(float64(settings.Memory)))
		if !f.Fits {
			f.Why = fmt.Sprintf("the exact way takes %.3g flops, auto goes up to %.0g", assignment.Cost.Flops, proposal.AutoFlopLimit(settings))
		}
	}
}

// priceChoice sets in f the method to which the settings lead, and its cost. If they lead to the exact method, f has both already.
func (c *planCmd) priceChoice(
	ctx context.Context, net *btn.Network, q query.Query, f *forecast, until time.Time,
) error {
	s := c.settings()
	isExact := s.Method == query.MethodExact || s.Method == query.MethodAuto && !s.NoExact && f.Fits
	if isExact || len(q.Joint) > 0 {
		return nil
	}
	demand := btn.Demand{Evidence: q.Evidence, Want: btn.Want{Marginals: q.Marginals, Targets: q.Targets}}
	assignments, err := c.assign(ctx, until, net, demand, s)
	if errors.Is(err, errSlow) {
		f.Choice, f.Components, f.Growth = s.Method, 0, "the plan of an estimate was "+err.Error()
		return nil
	}
	if err != nil {
		return err
	}

	a := assignments[0] // of the only demand
	if a.Error != nil {
		return fault.New(a.Error.Code, "%s", a.Error.Message)
	}
	f.Choice, f.Components = a.Plan.Method, a.Plan.PartCount()
	if f.Growth = stage.Describe(assignments); f.Growth != "" {
		_, f.Growth, _ = strings.Cut(f.Growth, ": ") // without the number of the query in front, as there is one
	}
	return nil
}

// describeSimplified says what is left of a network under the query's evidence before its contraction tree is searched.
func describeSimplified(ctx context.Context, net *btn.Network, d btn.Demand) (string, error) {
	conditioned, err := net.Condition(d.Evidence)
	if err != nil {
		return "", err
	}
	p, err := exact.Prepare(ctx, conditioned, d.Marginals)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(p.Report().String(), "\n", ", "), nil
}

// describe sets the description for people.
func (f *forecast) describe() {
	// the exact way
	exact := "none within the budget"
	if f.Unpriced {
		exact = errSlow.Error()
	}
	if p := f.Exact; p != nil {
		parts := countText(max(p.Slices, 1), "slice")
		if p.Groups > 0 {
			parts = countText(p.Groups, "group") + " of marginals"
		}
		exact = fmt.Sprintf("width %d, largest table 2^%.1f entries, %s, peak %s, %.3g flops, %s",
			p.Width, p.Log2Table, parts, config.FormatBytes(p.Bytes), p.Flops, countText(float64(f.Components), "component"))
	} else if f.ClosedForm > 0 {
		exact = fmt.Sprintf("closed form, %s%s", countText(float64(f.ClosedForm), "component"), f.closed)
	}

	// the rest
	learning := errSlow.Error()
	if f.LearnFlops != nil {
		learning = fmt.Sprintf("up to %.3g flops to learn", *f.LearnFlops)
	}
	simple := ""
	if f.Simplified != "" {
		simple = "\nsimplified  " + f.Simplified
	}
	evidence := f.Evidence
	if evidence == "" {
		evidence = "none"
	}

	f.description = fmt.Sprintf(`model       %s
evidence    %s
%sexact       %s%s
symmetry-cp %s
choice      %s: %s
`, f.Model, evidence, f.shape, exact, simple, learning, f.Choice, f.Why)
	if f.Growth != "" {
		f.description += fmt.Sprintf("estimates   %s\n", f.Growth)
	}
	for _, o := range f.Offers {
		f.description += fmt.Sprintf("%-11s %s: %s\n", "why", o.Way, o.Said)
	}
}
