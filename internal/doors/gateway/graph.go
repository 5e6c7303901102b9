package gateway

// Models as graphs to draw.

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Graph is a model without its tables.
type Graph struct {
	Variables []GraphVariable `json:"variables"`
	Factors   []GraphFactor   `json:"factors"`
	Bayes     bool            `json:"bayes"` // the factors are conditional probability tables, of the last variable of the scope, as a rule
	Kind
}

// GraphVariable is a variable.
type GraphVariable struct {
	Name   string   `json:"name,omitempty"`
	Domain int      `json:"domain"`
	States []string `json:"states,omitempty"`
	// Display is what the file's program shows in place of the name.
	Display string `json:"display,omitempty"`
	// Place is x, to the right, and y, downwards, where the file draws it; absent unless it draws all variables.
	Place []float64 `json:"place,omitempty"`
}

// GraphFactor is a factor.
type GraphFactor struct {
	Scope []int  `json:"scope"`
	Kind  string `json:"kind"` // dense, cp, symmetric, symmetry_cp
}

// mostNodes is the largest number of variables and factors of a returned graph.
const mostNodes = 200_000

// formOf returns the form of a factor by its name in the native format.
func formOf(f factorgraph.Factor) string {
	switch f.Table.(type) {
	case *tensor.CP:
		return "cp"
	case *tensor.Symmetric:
		return "symmetric"
	case *tensor.SymmetryCP:
		return "symmetry_cp"
	}
	return "dense"
}

// graphOf returns a model without its tables.
func graphOf(m *factorgraph.Model) (Graph, error) {
	if n := len(m.Domains) + len(m.Factors); n > mostNodes {
		return Graph{}, refuse(http.StatusRequestEntityTooLarge, fault.OverBudget,
			"%d variables and factors, a graph shows %d at most", n, mostNodes)
	}
	g := Graph{
		Variables: make([]GraphVariable, len(m.Domains)), Factors: make([]GraphFactor, len(m.Factors)),
		Bayes: m.Bayes, Kind: kindOf(m),
	}
	for i, d := range m.Domains {
		g.Variables[i].Domain = d
		if m.Names != nil {
			g.Variables[i].Name = m.Names[i]
		}
		if m.States != nil {
			g.Variables[i].States = m.States[i]
		}
		if m.Aliases != nil {
			g.Variables[i].Display = m.Aliases[i]
		}
		if m.Layout != nil {
			g.Variables[i].Place = m.Layout[2*i : 2*i+2] // x and y
		}
	}
	for i, f := range m.Factors {
		g.Factors[i] = GraphFactor{Scope: f.Scope, Kind: formOf(f)}
	}
	return g, nil
}

// JobModel is the model of a job, and its queries.
type JobModel struct {
	Graph
	ModelDigest string         `json:"model_digest,omitempty"` // of a registered one
	Queries     []JobQuery     `json:"queries"`
	Settings    query.Settings `json:"settings"`
	DeadlineMS  int64          `json:"deadline_ms,omitempty"`
}

// JobQuery is a query of a job, by position.
type JobQuery struct {
	Hard  []factorgraph.Observation `json:"hard"`
	Soft  []factorgraph.Likelihood  `json:"soft"`
	Evid  string                    `json:"evid,omitempty"`
	Label string                    `json:"label,omitempty"`
	Over  int                       `json:"over,omitempty"` // 1 + the query over which ratio is, 0: none
	Asked map[string]any            `json:"asked"`          // the questions, as a model message has them
}

// jobQuery returns a query as it is shown, with its questions in one field. Cases are left out, since they may be many.
func jobQuery(q query.Query) (JobQuery, error) {
	view := JobQuery{
		Hard: append([]factorgraph.Observation{}, q.Evidence.Hard...), Soft: append([]factorgraph.Likelihood{}, q.Evidence.Soft...),
		Evid: q.Evid, Label: q.EvidenceFile, Over: q.Over,
	}
	q.Evidence, q.Evid, q.EvidenceFile, q.Over, q.Cases = factorgraph.Evidence{}, "", "", 0, nil
	message, err := codec.Marshal("query", &q, true)
	if err != nil {
		return view, err
	}
	text, err := codec.View(message)
	if err != nil {
		return view, err
	}
	err = json.Unmarshal(text, &view.Asked)
	delete(view.Asked, "t") // the name and the version of a message
	delete(view.Asked, "v")
	return view, err
}

// getJobModel answers with the model and the queries of a job. They are stored until the job is answered, and after
// that as long as there is room.
func (g *Gateway) getJobModel(c *call) error {
	id, err := c.jobID(c.request.PathValue("job"))
	if err != nil {
		return err
	}

	// the request, and its model
	ctx := c.request.Context()
	stored, err := g.bus.Log.Get(ctx, bus.StreamModel, message.AnyLaneFilter(id))
	if errors.Is(err, bus.ErrNotFound) {
		return notFound("the model of job %s is not stored, or not any more", id)
	}
	if err != nil {
		return err
	}
	var r wire.Request
	if err := wire.Decode(stored.Data, &r); err != nil {
		return err
	}
	var m *factorgraph.Model
	if r.ModelDigest != "" {
		m, err = c.fetchModel(ctx, message.Owner(id), r.ModelDigest)
	} else {
		m, err = decodeModel(r.Model, r.Text)
	}
	if err != nil {
		return err
	}
	if format := c.request.URL.Query().Get("format"); format != "" && format != formGraph {
		return c.writeModel(m, format)
	}

	// as a graph, with the queries
	graph, err := graphOf(m)
	if err != nil {
		return err
	}
	view := JobModel{Graph: graph, ModelDigest: r.ModelDigest, Queries: []JobQuery{}, Settings: r.Settings, DeadlineMS: r.DeadlineMS}
	for i := range r.Queries {
		q, err := jobQuery(r.Queries[i])
		if err != nil {
			return err
		}
		view.Queries = append(view.Queries, q)
	}
	return c.writeJSON(http.StatusOK, view)
}
