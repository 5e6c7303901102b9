package gateway

// Rows of CSV files.

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nuid"
)

// Cases asks a query of every row of a CSV file, of exactly one of model, text and model_name.
type Cases struct {
	Model     json.RawMessage  `json:"model,omitempty"`
	Text      string           `json:"text,omitempty"`
	Format    string           `json:"format,omitempty"`
	ModelName string           `json:"model_name,omitempty"`
	Cases     string           `json:"cases"`             // the text of the file
	Targets   []named.Variable `json:"targets,omitempty"` // none: ln P(evidence) alone
	ID        []string         `json:"id,omitempty"`      // columns that are carried over
	Ignore    []string         `json:"ignore,omitempty"`  // columns that are left out
	Missing   []string         `json:"missing,omitempty"` // words for a missing value
	Settings  query.Settings   `json:"settings,omitzero"`
}

// CaseTable has the answers, a row for each row, as btn cases writes them.
type CaseTable struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	Failed  int64      `json:"failed"`   // rows with an error
	HasMore bool       `json:"has_more"` // rows that were not asked
}

// Of one request: mostCases rows in jobs of caseJob, beside the job without evidence.
const (
	mostCases = 1000
	caseJob   = 50
	mostJobs  = 1 + mostCases/caseJob
)

// postCases answers the query for the first rows of a CSV file.
func (g *Gateway) postCases(c *call) error {
	// the request
	var question Cases
	kind, _, err := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, fault.BadInput, "the content type of a request has to be application/json, not %.80q",
			c.request.Header.Get("Content-Type"))
	}
	if err := c.reserveBytes(int64(countElements(c.body)) * bytesOfElement); err != nil {
		return err
	}
	if err := jsontext.Strict(c.body, &question); err != nil {
		return badRequest("body: %w", err)
	}

	// the query of every row, and the rows
	ctx, cancel := context.WithTimeout(c.request.Context(), g.limits.Patience)
	defer cancel()
	sweep, err := c.newSweep(ctx, &question)
	if err != nil {
		return err
	}
	rows, err := cases.NewReader(strings.NewReader(question.Cases), sweep.Labels, cases.Columns{
		IDs: question.ID, Ignore: question.Ignore, Missing: question.Missing, Advice: "; id carries a column over, ignore leaves it out",
	})
	if err != nil {
		return badRequest("cases: %w", err)
	}
	rows.LimitRows(mostCases)

	// their answers
	table, err := c.runSweep(ctx, sweep, rows)
	if isOutOfTime := ctx.Err() != nil && c.request.Context().Err() == nil; isOutOfTime {
		return refuse(http.StatusGatewayTimeout, fault.Deadline, "no answer to all rows within %s: ask fewer at a time", g.limits.Patience)
	}
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, table)
}

// newSweep returns the query of every row. A model that is not registered travels with every job, so its bytes are
// reserved as often.
func (c *call) newSweep(ctx context.Context, question *Cases) (*cases.Sweep, error) {
	model := Infer{Model: question.Model, Text: question.Text, Format: question.Format, ModelName: question.ModelName}
	if err := model.takeModelName(); err != nil {
		return nil, err
	}
	if err := c.reserveBytes(int64(len(model.Model)+len(model.Text)) * mostJobs); err != nil {
		return nil, err
	}
	request := wire.Request{Settings: question.Settings, DeadlineMS: c.gateway.limits.Patience.Milliseconds()}
	var err error
	if request.Job, err = c.jobID(lookPrefix + nuid.Next()); err != nil {
		return nil, err
	}
	labels, err := c.takeModel(ctx, &model, &request)
	if err != nil {
		return nil, err
	}
	targets, err := named.Variables(labels, question.Targets)
	if err != nil {
		return nil, badRequest("targets: %w", err)
	}
	return &cases.Sweep{Request: request, Domains: labels.Domains(), Labels: labels, Targets: targets}, c.reserveTable(labels, targets)
}

// reserveTable reserves the bytes of a table of answers with all values of the targets.
func (c *call) reserveTable(labels *factorgraph.Labels, targets []int) error {
	cells := 0
	for _, v := range targets {
		cells += labels.Domains()[v]
	}
	return c.reserveBytes(int64(cells) * mostCases * bytesOfCell)
}

// bytesOfCell is what a number takes in the answer, as text and as a string of a list.
const bytesOfCell = 24 + 16

// runSweep asks the query for all rows, and returns the table of their answers.
func (c *call) runSweep(ctx context.Context, sweep *cases.Sweep, rows *cases.Reader) (result CaseTable, err error) {
	client, err := c.client()
	if err != nil {
		return result, err
	}
	text := heldText{call: c}
	counts, err := sweep.Run(ctx, client, rows, &text, nil) // nil: no file in which an earlier run may have left rows
	if err != nil {
		return result, err
	}
	table, err := csv.NewReader(&text.buffer).ReadAll()
	if err != nil {
		return result, fault.Wrap(fault.Internal, err)
	}
	return CaseTable{Columns: table[0], Rows: table[1:], Failed: counts.Failed, HasMore: rows.HasMore()}, nil
}
