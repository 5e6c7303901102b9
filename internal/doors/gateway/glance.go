package gateway

// Model, method and first answer of the jobs in a list.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/models/bayesnet"
	"github.com/basetensor/basetensor/internal/models/dimacs"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"golang.org/x/sync/errgroup"
)

// Glance summarises a job. Large requests and answers, stored as blobs, are not read for it.
type Glance struct {
	Model     string           `json:"model,omitempty"`     // of a registered one its name, or without one its digest
	Variables int              `json:"variables,omitempty"` // of a model that came with the request
	Queries   int              `json:"queries,omitempty"`
	Question  string           `json:"question,omitempty"` // the names of what is asked, of the first query
	Method    query.Method     `json:"method,omitempty"`   // that the first answer came by; before, that was asked for
	First     *First           `json:"first,omitempty"`    // of the answers to the queries
	Error     *query.ErrorInfo `json:"error,omitempty"`    // of the job
	Kind
}

// Kind says what Z of a model is. Of other models than these it has no other name.
type Kind struct {
	// Formula says that the model is a formula in CNF: its variables are called by their numbers, and Z is its (weighted) count.
	Formula bool `json:"formula,omitempty"`
	// Normalised says that the model is a Bayesian network, and the rows of its tables sum to 1: Z is P(evidence).
	Normalised bool `json:"normalised,omitempty"`
}

// kindOf returns the kind of a model.
func kindOf(m *factorgraph.Model) Kind {
	return Kind{Formula: dimacs.IsFormula(m), Normalised: bayesnet.IsNormalised(m)}
}

// First is the answer to the first query, without marginals and other long fields.
type First struct {
	Exact       bool             `json:"exact"`
	Zero        bool             `json:"zero"`
	LogZ        *float64         `json:"log_z"`
	Uncertainty *float64         `json:"uncertainty"`
	Error       *query.ErrorInfo `json:"error"`
}

// Bounds of glances.
const (
	mostGlances   = 20_000  // that are remembered
	glancesAtOnce = 8       // jobs that are read at a time
	glancedBytes  = 8 << 20 // of a registered model that is read, as much as a message has at most
)

// addGlances adds to each line of a page of jobs the glance of its job, a summary of the request and the answer.
func (c *call) addGlances(lines []JobLine) error {
	g, ctx := errgroup.WithContext(c.request.Context())
	g.SetLimit(glancesAtOnce)
	for i := range lines {
		g.Go(func() (err error) {
			lines[i].Glance, err = c.gateway.glanceOf(ctx, &lines[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}

	return c.describeModels(lines)
}

// describeModels replaces the digests of registered models in lines by names, if they have one, and says of which kind
// these models are.
func (c *call) describeModels(lines []JobLine) error {
	var names map[string]string // by owner and digest
	var sizes map[string]uint64
	for i := range lines {
		digest := lines[i].Glance.Model
		if digest == "" {
			continue
		}
		if names == nil { // the first registered model
			registered, err := c.gateway.ownClient.Registered(c.request.Context())
			if err != nil {
				return err
			}
			names, sizes = map[string]string{}, map[string]uint64{}
			for _, v := range registered.Versions {
				names[v.Owner+" "+v.Digest] = v.String()
			}
			for _, m := range registered.Models {
				sizes[m.Owner+" "+m.Digest] = m.Bytes
			}
		}
		described := *lines[i].Glance // a copy, since the glance is remembered as it is
		// The model is of all tenants, or of the job's own, whose name goes before.
		for _, owner := range []string{"", message.Owner(lines[i].Job)} {
			key := owner + " " + digest
			if name := names[key]; name != "" {
				described.Model = name
			}
			if size := sizes[key]; size > 0 && size <= glancedBytes { // 0: this owner has no such model
				var err error
				if described.Kind, err = c.registeredKind(owner, digest); err != nil {
					return err
				}
			}
		}
		lines[i].Glance = &described
	}
	return nil
}

// registeredKind returns the kind of a registered model, which never changes. A model that cannot be read has none.
func (c *call) registeredKind(owner, digest string) (k Kind, err error) {
	key := owner + " " + digest
	if k, ok := c.gateway.kinds.Get(key); ok {
		return k, nil
	}
	m, err := c.fetchModel(c.request.Context(), owner, digest)
	switch {
	case fault.CodeOf(err) == fault.Infrastructure || c.request.Context().Err() != nil:
		return k, err
	case err == nil:
		k = kindOf(m)
	}
	return c.gateway.kinds.Add(key, k, 1), nil
}

// glanceOf returns the glance of a job, the summary that lists of jobs show: from memory if the job's model and answer are
// still the messages that they were.
func (g *Gateway) glanceOf(ctx context.Context, l *JobLine) (*Glance, error) {
	key := fmt.Sprintf("%s %d %d %d %d", l.Job, l.model, l.Submitted, l.answer, l.Answered)
	if glance, ok := g.glances.Get(key); ok {
		return glance, nil
	}
	glance := new(Glance)
	var request wire.Request
	switch isRead, err := g.readWhole(ctx, bus.StreamModel, message.AnyLaneFilter(l.Job), &request); {
	case err != nil:
		return nil, err
	case isRead:
		glance.addRequest(&request)
	}
	var answer wire.Answer
	if l.answer > 0 {
		switch isRead, err := g.readWhole(ctx, bus.StreamAnswer, wire.AnswerSubject(l.Job), &answer); {
		case err != nil:
			return nil, err
		case isRead:
			glance.addAnswer(answerOf(&answer))
		}
	}
	return g.glances.Add(key, glance, 1), nil // 1: only their number is bounded
}

// readWhole reads the last message of a subject. It returns false if there is none, or one that is stored as a blob or
// cannot be read.
func (g *Gateway) readWhole(ctx context.Context, stream, subject string, target wire.Message) (bool, error) {
	m, err := g.bus.Log.GetRaw(ctx, stream, subject)
	switch {
	case fault.CodeOf(err) == fault.Infrastructure || ctx.Err() != nil:
		return false, err
	case err != nil || bus.HasBlob(m.Header):
		return false, nil
	}
	return wire.Decode(m.Data, target) == nil, nil
}

// addRequest adds what a job's request says to the summary of the job.
func (glance *Glance) addRequest(r *wire.Request) {
	glance.Queries, glance.Method = len(r.Queries), r.Settings.WithDefaults().Method
	glance.Question = message.AboutOf(r).Question
	switch {
	case form.IsDigest(r.ModelDigest):
		glance.Model = r.ModelDigest
	default:
		if m, err := decodeModel(r.Model, r.Text); err == nil {
			glance.Variables, glance.Kind = len(m.Domains), kindOf(m)
		}
	}
}

// addAnswer adds what the answer says.
func (glance *Glance) addAnswer(a Answer) {
	glance.Error = a.Error
	if len(a.Results) == 0 {
		return
	}
	glance.Queries = len(a.Results)
	first := &a.Results[0]
	if first.Method != "" {
		glance.Method = first.Method
	}
	glance.First = &First{first.Exact, first.Zero, first.LogZ, first.Uncertainty, first.Error}
}
