package main

// A model at a glance: its variables, its tables, and the price of a question.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	mostListed  = 20      // variables that are listed, and values, parents or tables of one of them
	widestList  = 60      // letters of a list of names in a line
	mostEntries = 64      // entries of a table that are printed
	mostPairs   = 1 << 22 // neighbours of all variables together that are printed as JSON
)

// showCmd prints a model, or one of its variables.
type showCmd struct {
	modelFlag
	Variable string        `arg:"" optional:"" help:"Show this variable alone: its values, its parents or neighbours, and its tables."`
	Within   time.Duration `help:"${show_within}" default:"2s" placeholder:"D"`
	NATS     string        `name:"nats" help:"${show_nats}" placeholder:"URL"`
	JSON     bool          `name:"json" help:"Print one JSON object."`

	AsNATS connect.NATS `embed:"" group:"connection"`
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *showCmd) Validate() error {
	if c.Within <= 0 {
		return fmt.Errorf("--within must be above 0, not %s", c.Within)
	}
	return nil
}

// Run prints the model, or one of its variables.
func (c *showCmd) Run(ctx context.Context, t *console.Terminal) error {
	m, err := c.loadModel(ctx, t.Opener(ctx), natsFlag{serverFlags: serverFlags{c.NATS, c.AsNATS}})
	if err != nil {
		return err
	}
	labels, err := m.Labels()
	if err != nil {
		return err
	}
	tellRows(t, m)

	// one variable
	g := newGraph(m, labels)
	if c.Variable != "" {
		v, err := labels.Variable(c.Variable)
		if err != nil {
			return fault.New(fault.BadInput, "%s: %w", c.Model, err)
		}
		if c.JSON {
			return json.NewEncoder(t.Out).Encode(g.variable(v))
		}
		_, err = fmt.Fprint(t.Out, g.describe(v))
		return err
	}

	// the model
	prices, err := c.prices(ctx, m, t.Began.Add(c.Within))
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(t.Out).Encode(g.summary(c.Model, prices))
	}
	_, err = fmt.Fprint(t.Out, g.overview(c.Model, prices))
	return err
}

// tellRows says which rows of a Bayesian network do not sum to 1, and what answers do with them.
func tellRows(t *console.Terminal, m *factorgraph.Model) {
	normal, rounding := m.Normalised()
	for _, warning := range rounding.Warnings(normal) {
		fmt.Fprintf(t.Err, "btn: %s\n", warning)
	}
}

// prices returns the forecasts of two questions without evidence: ln Z, and all marginals.
func (c *showCmd) prices(ctx context.Context, m *factorgraph.Model, until time.Time) ([]*forecast, error) {
	// a plan command with default flags
	p := planCmd{Within: c.Within}
	p.Model, p.Memory, p.Accuracy, p.Method = c.Model, config.Size(query.DefaultMemory), query.DefaultAccuracy, string(query.MethodAuto)
	if err := p.workFlags.Validate(); err != nil {
		return nil, err
	}
	p.tableBytes = tableMemory(p.Memory, m)
	net, err := p.makeNetwork(ctx, m, until)
	if err != nil {
		return nil, err
	}

	// its forecasts
	var list []*forecast
	for i, q := range []query.Query{{}, {Marginals: true}} {
		partEnd := until.Add(-time.Until(until) * time.Duration(1-i) / 2) // the first has half of the time, the second the remaining half
		f, err := p.forecast(ctx, planInput{model: m, net: net}, q, partEnd)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// graph is a model with its variables' neighbours.
type graph struct {
	model      *factorgraph.Model
	labels     *factorgraph.Labels
	isDirected bool    // whether the scopes are those of a Bayesian network, whatever the numbers
	nodes      []int   // of a Bayesian network, per factor, the position in its scope of the variable whose table it is
	factors    [][]int // per variable, the factors over it
	listed     []int   // per variable, 1 + the last variable of which it was listed as a neighbour
}

// newGraph returns the graph of a model: for each variable the factors over it, and for a Bayesian network (isDirected) for
// each factor the position of its child.
func newGraph(m *factorgraph.Model, l *factorgraph.Labels) *graph {
	g := &graph{model: m, labels: l, nodes: m.NetworkNodes(), factors: make([][]int, len(m.Domains)), listed: make([]int, len(m.Domains))}
	g.isDirected = g.nodes != nil
	for i, f := range m.Factors {
		for _, v := range f.Scope {
			g.factors[v] = append(g.factors[v], i)
		}
	}
	return g
}

// shownVariable is a variable as JSON.
type shownVariable struct {
	Variable int      `json:"variable"`
	Name     string   `json:"name"`
	Values   []string `json:"values"`
	Parents  []string `json:"parents,omitempty"`    // of a Bayesian network
	Children []string `json:"children,omitempty"`   // of a Bayesian network
	Together []string `json:"neighbours,omitempty"` // of another model: the variables in a factor with this one
	Factors  []int    `json:"factors"`              // positions of the factors over it
}

// variable returns a variable as JSON: with parents and children in a Bayesian network, and with neighbours in another model.
func (g *graph) variable(v int) shownVariable {
	s := shownVariable{Variable: v, Name: g.labels.OfVariable(v), Values: g.values(v), Factors: g.factors[v]}
	if !g.isDirected {
		s.Together = g.names(g.neighbours(v))
		return s
	}
	s.Parents = g.names(g.parents(v))
	for _, i := range g.factors[v] {
		if child := g.child(i); child != v {
			s.Children = append(s.Children, g.labels.OfVariable(child))
		}
	}
	return s
}

// values returns the names of the values of variable v.
func (g *graph) values(v int) []string {
	names := make([]string, g.model.Domains[v])
	for x := range names {
		names[x] = g.labels.OfValue(v, x)
	}
	return names
}

// names returns the names of variables.
func (g *graph) names(variables []int) []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = g.labels.OfVariable(v)
	}
	return names
}

// parents returns the parents of a variable of a Bayesian network, which are the other variables of its table.
func (g *graph) parents(v int) []int {
	for _, i := range g.factors[v] {
		if g.child(i) == v {
			scope, position := g.model.Factors[i].Scope, g.nodes[i]
			return slices.Concat(scope[:position], scope[position+1:])
		}
	}
	return nil
}

// child returns the variable of a Bayesian network whose table a factor is.
func (g *graph) child(factor int) int { return g.model.Factors[factor].Scope[g.nodes[factor]] }

// neighbours returns the other variables of the factors over v, in increasing order.
func (g *graph) neighbours(v int) []int {
	// listed[w] is v + 1 if w is in the list already, or is v itself.
	var list []int
	g.listed[v] = v + 1
	for _, i := range g.factors[v] {
		for _, w := range g.model.Factors[i].Scope {
			if g.listed[w] != v+1 {
				g.listed[w] = v + 1
				list = append(list, w)
			}
		}
	}
	slices.Sort(list)
	return list
}

// neighbourBound returns a bound on the number of neighbours of all variables together.
func (g *graph) neighbourBound() (n int) {
	for _, f := range g.model.Factors {
		n += len(f.Scope) * len(f.Scope)
	}
	return n
}

// shownModel is a model as JSON.
type shownModel struct {
	Model string `json:"model"`
	Kind  string `json:"kind"`
	Named bool   `json:"named"`
	shape
	LnZ       *forecast       `json:"ln_z"`
	Marginals *forecast       `json:"marginals"`
	List      []shownVariable `json:"list"`
}

// summary returns the model as it is printed as JSON, with all of its variables. The neighbours of variables are left out
// if there may be more than mostPairs of them. prices are the forecasts for ln Z and for all marginals.
func (g *graph) summary(name string, prices []*forecast) shownModel {
	s := shownModel{Model: name, Kind: g.kind(), Named: g.labels.Named(), shape: shapeOf(g.model), LnZ: prices[0], Marginals: prices[1]}
	hasManyNeighbours := !g.isDirected && g.neighbourBound() > mostPairs
	for v := range g.model.Domains {
		line := shownVariable{Variable: v, Name: g.labels.OfVariable(v), Values: g.values(v), Factors: g.factors[v]}
		if !hasManyNeighbours {
			line = g.variable(v)
		}
		s.List = append(s.List, line)
	}
	return s
}

// kind names the kind of the model.
func (g *graph) kind() string {
	if g.isDirected {
		return "Bayesian network"
	}
	return "factor graph"
}

// overview returns the model for people: its size, the prices of ln Z and of all marginals, and its first variables.
func (g *graph) overview(name string, prices []*forecast) string {
	var b strings.Builder
	fmt.Fprintf(&b, "model       %s, a %s\n%s", name, g.kind(), shapeOf(g.model))
	fmt.Fprintf(&b, "ln Z        %s\nmarginals   %s\n\n", prices[0].price(), prices[1].price())

	// the first variables
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	related := "neighbours"
	if g.isDirected {
		related = "parents"
	}
	fmt.Fprintf(w, "variable\tvalues\t%s\n", related)
	for v := range min(mostListed, len(g.model.Domains)) {
		relatives := g.neighbours(v)
		if g.isDirected {
			relatives = g.parents(v)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n",
			printable(g.labels.OfVariable(v)), joinNames(g.values(v), "value"), joinNames(g.names(relatives), "variable"))
	}
	w.Flush()
	if n := len(g.model.Domains) - mostListed; n > 0 {
		fmt.Fprintf(&b, "… and %s: btn show MODEL VARIABLE shows one, --json all\n", countText(float64(n), "more variable"))
	}
	return trimLines(b.String())
}

// price returns the forecast in a line.
func (f *forecast) price() string {
	switch {
	case f.Unpriced:
		return f.Why + ": see btn plan"
	case f.Choice == query.MethodExact && f.Exact != nil:
		return fmt.Sprintf("exact, %.2g flops, %s", f.Exact.Flops, config.FormatBytes(f.Exact.Bytes))
	case f.Choice == query.MethodExact && f.ClosedForm > 0:
		return "exact, in closed form" + f.closed
	case f.Choice == query.MethodExact:
		return "not within the budget: " + f.Why
	}
	return fmt.Sprintf("an estimate, by method %s: %s", f.Choice, f.Why)
}

// describe returns a variable for people, with its tables.
func (g *graph) describe(v int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "variable    %s, number %d of %d\nvalues      %s\n",
		printable(g.labels.OfVariable(v)), v, len(g.model.Domains), joinNames(g.values(v), "value"))
	s := g.variable(v)
	var factors []int
	if g.isDirected {
		fmt.Fprintf(&b, "parents     %s\nchildren    %s\n", joinNames(s.Parents, "variable"), joinNames(s.Children, "variable"))
		for _, i := range g.factors[v] {
			if g.child(i) == v {
				factors = append(factors, i)
			}
		}
	} else {
		fmt.Fprintf(&b, "neighbours  %s\n", joinNames(s.Together, "variable"))
		factors = g.factors[v]
	}

	// its tables
	for k, i := range factors {
		if k == mostListed {
			fmt.Fprintf(&b, "\n… and %s\n", countText(float64(len(factors)-k), "more table"))
			break
		}
		g.writeTable(&b, i)
	}
	return trimLines(b.String())
}

// writeTable writes factor i. If it is a table of at most mostEntries entries, it writes a line for each row, and otherwise the form and
// the number of entries alone.
func (g *graph) writeTable(b *strings.Builder, i int) {
	f := g.model.Factors[i]
	dims := f.Table.Dims()
	entries, err := tensor.Size(dims)
	dense, isTable := f.Table.(*tensor.Dense)
	form := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", f.Table), "*tensor."))
	if err != nil || entries > mostEntries || !isTable {
		fmt.Fprintf(b, "\nfactor %d over %s: %s", i, joinNames(g.names(f.Scope), "variable"), form)
		if err == nil {
			fmt.Fprintf(b, ", %d entries", entries)
		}
		fmt.Fprintln(b)
		return
	}

	fmt.Fprintln(b)
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	rows := g.rowsOf(i)
	for k, name := range rows.head {
		rows.head[k] = printable(name)
	}
	fmt.Fprintln(w, strings.Join(rows.head, "\t"))
	for row := range entries / rows.length {
		cells := make([]string, len(rows.scope)) // the values of the row's variables, the last one fastest, then its entries
		for k, index := len(rows.scope)-1, row; k >= 0; k-- {
			d := g.model.Domains[rows.scope[k]]
			cells[k] = printable(g.labels.OfValue(rows.scope[k], index%d))
			index /= d
		}
		first := rows.firstEntry(row)
		for x := range rows.length {
			cells = append(cells, fmt.Sprintf("%.6g", dense.Data[first+x*rows.stride]))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	w.Flush()
}

// tableRows says how a table is written in rows.
type tableRows struct {
	scope  []int    // the variables whose values name a row
	length int      // number of entries of a row
	stride int      // distance in the table from an entry of a row to the next
	head   []string // names of the columns: of the variables and of the entries
}

// rowsOf says how the table of factor i is written in rows. Conditional probabilities have a row for each assignment of the parents, with
// an entry for each value of the child, stride numbers apart. Other tables have a row for each entry.
func (g *graph) rowsOf(i int) tableRows {
	f := g.model.Factors[i]
	if !g.isDirected {
		return tableRows{scope: f.Scope, length: 1, stride: 1, head: append(g.names(f.Scope), "weight")}
	}
	position, child := g.nodes[i], g.child(i)
	dims, parents := f.Table.Dims(), g.parents(child)
	head := append(g.names(parents), prefixed(g.labels.OfVariable(child)+"=", g.values(child))...)
	// The stride is the number of entries for one value of each variable up to the child.
	return tableRows{scope: parents, length: dims[position], stride: decimal.Entries(dims[position+1:]), head: head}
}

// firstEntry returns the index of the first entry of a row. stride rows lie within each other: their first entries are next to each other,
// and the next block of rows begins stride·length entries further.
func (r tableRows) firstEntry(row int) int {
	block, offset := row/r.stride, row%r.stride
	return block*r.stride*r.length + offset
}

// prefixed returns the names behind a prefix.
func prefixed(prefix string, names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = prefix + name
	}
	return list
}

// joinNames joins names for a line, after it has made each of them printable in place. If they are too long together, it returns how many
// things there are.
func joinNames(names []string, thing string) string {
	for i := range names {
		names[i] = printable(names[i])
	}
	text := strings.Join(names, " ")
	switch {
	case len(names) == 0:
		return "none"
	case len([]rune(text)) > widestList:
		return countText(float64(len(names)), thing)
	}
	return text
}

// trimLines returns a text without spaces at the ends of its lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
