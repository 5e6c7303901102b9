package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nuid"
)

// Infer asks queries of a model: exactly one of model, text and model_name. One query may be given flat, without queries.
type Infer struct {
	Job        string          `json:"job,omitempty"`    // its id; made up without it. The same request under the same id is the same job
	Tenant     string          `json:"tenant,omitempty"` // whose job it is
	Model      json.RawMessage `json:"model,omitempty"`  // native JSON, or a string with the name of a registered one, as in model_name
	Text       string          `json:"text,omitempty"`   // a model file
	Format     string          `json:"format,omitempty"` // of text, where that does not tell
	ModelName  string          `json:"model_name,omitempty"`
	Queries    []Query         `json:"queries,omitempty"`
	Settings   query.Settings  `json:"settings,omitzero"`
	DeadlineMS int64           `json:"deadline_ms,omitempty"`
	Async      bool            `json:"async,omitempty"` // submit, and do not wait
	Look       bool            `json:"look,omitempty"`  // a question in passing, as clicks ask: lists leave it out where they shall
	Query
}

// Answer ends a job, or says that it has none yet.
type Answer struct {
	Job     string           `json:"job"`
	Tenant  string           `json:"tenant,omitempty"`
	Digest  string           `json:"digest"` // of the request
	Status  string           `json:"status"` // pending, ok, error, cancelled, deadline
	Error   *query.ErrorInfo `json:"error"`
	Results []query.Result   `json:"results"`
}

// StatusPending: the job has no answer yet.
const StatusPending = "pending"

// Submitted says that a job is stored.
type Submitted struct {
	Job    string `json:"job"`
	Digest string `json:"digest,omitempty"` // of the request; absent where it is not known
	Status string `json:"status"`
}

// postInfer asks queries of a model and answers with their results, or, if the request is asynchronous, with the job's
// id. If the client goes away and did not choose the job's id, the job is cancelled.
func (g *Gateway) postInfer(c *call) error {
	tenantClient, err := c.client()
	if err != nil {
		return err
	}

	// submit the job
	ctx := c.request.Context()
	request, options, err := c.readJob(ctx)
	if err != nil {
		return err
	}
	if err := g.board.listen(); err != nil { // progress is kept from now on, for later requests of it
		return err
	}
	job, deadline := request.Job, request.DeadlineMS
	digest, err := tenantClient.Submit(ctx, *request)
	if err != nil {
		return err
	}
	request = nil // the tables of the model are not held while its answer is waited for
	c.releaseBytes()

	c.response.Header().Set("Location", "/v1/jobs/"+job)
	if options.isAsync {
		return c.writeJSON(http.StatusAccepted, Submitted{job, digest, StatusPending})
	}

	patience := g.limits.Patience
	if deadline > 0 && deadline < patience.Milliseconds() {
		patience = min(patience, time.Duration(deadline)*time.Millisecond+time.Second) // a second for the answer to come
	}
	return c.answerJob(ctx, tenantClient, job, digest, patience, options.isIDGiven)
}

// answerJob waits for the answer of a job, and answers with it. If the patience ends first, it answers that the job is pending.
func (c *call) answerJob(
	ctx context.Context, tenantClient *client.Client, job, digest string, patience time.Duration, isIDGiven bool,
) error {
	waitCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := tenantClient.Wait(waitCtx, job)
	switch {
	case err == nil:
		return c.writeAnswer(answer)
	case lossOf(ctx) != nil: // the gateway has lost its connection to NATS
		return infrastructure("%w; the job goes on: GET /v1/jobs/%s has its answer when it is back", lossOf(ctx), job)
	case ctx.Err() != nil && !isIDGiven:
		// the client went away, and nobody knows the job's id: nobody will ask for its answer
		cancelCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return errors.Join(ctx.Err(), tenantClient.Cancel(cancelCtx, job, "the client went away"))
	case ctx.Err() != nil:
		return ctx.Err()
	case waitCtx.Err() != nil: // the patience has ended
		info := infoOf(fault.New(fault.Deadline, "no answer within %s; the job goes on: GET /v1/jobs/%s has its answer", patience, job))
		return c.writeJSON(http.StatusGatewayTimeout, Answer{
			Job: job, Digest: digest, Status: StatusPending, Error: &info, Results: []query.Result{},
		})
	}
	return err
}

// writeAnswer writes an answer, with the status of its error if it has one.
func (c *call) writeAnswer(a *wire.Answer) error {
	status := http.StatusOK
	if a.Error != nil {
		status = statusOfCode(a.Error.Code)
	}
	return c.writeJSON(status, answerOf(a))
}

// answerOf returns an answer in the form in which it is written.
func answerOf(a *wire.Answer) Answer {
	out := Answer{Job: a.Job, Tenant: a.Tenant, Digest: a.Digest, Status: a.Status, Error: a.Error, Results: a.Results}
	if out.Results == nil {
		out.Results = []query.Result{}
	}
	return out
}

// inferOptions are the parts of a request for answers that its job does not have.
type inferOptions struct {
	isIDGiven bool // the client chose the job's id
	isAsync   bool // the client does not wait for the answer
}

// readJob reads a request for answers, and returns its job and its options.
func (c *call) readJob(ctx context.Context) (*wire.Request, inferOptions, error) {
	question, err := c.readInfer()
	if err != nil {
		return nil, inferOptions{}, err
	}
	isListed := question.Queries != nil
	if !isListed {
		question.Queries = []Query{question.Query}
	} else if !reflect.ValueOf(question.Query).IsZero() {
		return nil, inferOptions{}, badRequest("one query may be given flat, or several in queries, and not both")
	}

	// id and tenant
	request := &wire.Request{Tenant: question.Tenant, Settings: question.Settings, DeadlineMS: question.DeadlineMS}
	id := question.Job
	if question.Look {
		if id != "" {
			return nil, inferOptions{}, badRequest("look makes up the job's id: job is not given beside it")
		}
		id = lookPrefix + nuid.Next()
	}
	if request.Job, err = c.jobID(id); err != nil {
		return nil, inferOptions{}, err
	}
	if c.caller.Tenant != "" {
		if question.Tenant != "" && question.Tenant != c.caller.Tenant {
			return nil, inferOptions{}, refuse(http.StatusForbidden, fault.BadInput, "the key is not that of tenant %.80q", question.Tenant)
		}
		request.Tenant = "" // the job's id has it in front
	}

	// model and queries
	labels, err := c.takeModel(ctx, &question, request)
	if err != nil {
		return nil, inferOptions{}, err
	}
	request.Queries, err = queriesOf(question.Queries, isListed, labels)
	return request, inferOptions{isIDGiven: question.Job != "", isAsync: question.Async}, err
}

// jobID returns the full id of a job of the caller, with the tenant in front. For "" it makes up an id.
func (c *call) jobID(id string) (string, error) {
	if id == "" {
		id = nuid.Next()
	}
	if owner := c.caller.Tenant; owner != "" && !strings.Contains(id, ".") {
		id = owner + "." + id
	}
	if !wire.ValidJob(id) {
		return "", badRequest("job %.130q is not [A-Za-z0-9_-]{1,64}, nor that of an owner, a dot and that", id)
	}
	if owner := c.caller.Tenant; owner != "" && message.Owner(id) != owner {
		return "", notFound("job %s is not one of tenant %s", id, owner)
	}
	return id, nil
}
