package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// questionFlags ask about evidence and single variables, or any questions by a file: shared by infer, submit and plan.
type questionFlags struct {
	Event     string   `help:"${request_event}" placeholder:"EVIDENCE"`
	Queries   string   `help:"${request_queries}" placeholder:"FILE"`
	Mar       bool     `help:"The marginals of all variables as well."`
	Target    []string `help:"${request_target}" placeholder:"V,V"`
	Joint     []string `help:"${request_joint}" placeholder:"V,V"`
	Gradients bool     `help:"${request_gradients}"`
}

// validate refuses questions that exclude each other, given the evidence and the model.
func (f *questionFlags) validate(r *requestFlags) error {
	if err := checkStandardInput(append(r.Evid, r.Model, f.Event, f.Queries)...); err != nil {
		return err
	}
	if f.Queries != "" && (len(r.Evid) > 0 || f.Event != "") {
		return errors.New("--queries has its own evidence and events: --evid and --event exclude it")
	}
	return r.Validate()
}

// question returns what the flags ask.
func (f *questionFlags) question() *question {
	return &question{query: f.query, queries: f.Queries, event: f.Event}
}

// query returns what the flags ask beside evidence and events.
func (f *questionFlags) query(_ console.Opener, l *factorgraph.Labels) (q query.Query, err error) {
	q.Marginals, q.Gradients = f.Mar, f.Gradients
	if q.Joint, err = findVariables(l, "--joint", f.Joint, query.CheckJoint); err == nil {
		q.Targets, err = findVariables(l, "--target", f.Target, nil)
	}
	return q, err
}

// findVariables returns the variables that a flag names. check, unless it is nil, checks them against the domains of
// the model.
func findVariables(l *factorgraph.Labels, flag string, names []string, check func(domains, set []int) error) ([]int, error) {
	v, err := named.Variables(l, names)
	if err == nil && check != nil {
		err = check(l.Domains(), v)
	}
	if err != nil {
		return nil, fault.New(fault.BadInput, "%s: %w", flag, err)
	}
	return v, nil
}

// addFlags adds what the flags ask to the queries of a file that do not say it themselves, and checks them.
func addFlags(queries []query.Query, asked query.Query, l *factorgraph.Labels) error {
	for i := range queries {
		q := &queries[i]
		if q.Over > 0 {
			continue // made of the line before, for its event
		}
		q.Marginals = q.Marginals || asked.Marginals
		q.Gradients = q.Gradients || asked.Gradients
		if q.Do == nil {
			q.Do = asked.Do
		}
		if q.Believe == nil {
			q.Believe = asked.Believe
		}
		if q.Joint == nil {
			q.Joint = asked.Joint
		}
		if q.Targets == nil {
			q.Targets = asked.Targets
		}
		err := query.CheckJoint(l.Domains(), q.Joint)
		if err == nil {
			err = query.CheckSamples(len(l.Domains()), q.Samples)
		}
		if err != nil {
			return fault.New(fault.BadInput, "%s: %w", q.EvidenceFile, err)
		}
	}
	return nil
}

// readQueryFile reads the queries of a file, a JSON object in each line. A line with an event gives two: one with the
// evidence, and one with the event as well, asked over it. Their labels are FILE:LINE. Errors have the code bad_input
// and the line.
func readQueryFile(open console.Opener, path string, l *factorgraph.Labels) ([]query.Query, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var queries []query.Query
	lines := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, readErr := lines.ReadBytes('\n') // at the end of the file a line and io.EOF
		if readErr != nil && readErr != io.EOF {
			return nil, fault.New(console.CodeOfInput(readErr), "%s: %w", console.InputName(path), readErr)
		}
		label := fmt.Sprintf("%s:%d", path, n)
		if line := bytes.TrimSpace(line); len(line) > 0 {
			var q named.Query
			err := jsontext.Strict(line, &q)
			var ofLine []query.Query
			if err == nil {
				ofLine, err = q.Queries(l, label, len(queries))
			}
			if err != nil {
				return nil, fault.New(fault.BadInput, "%s: %w", label, err)
			}
			queries = append(queries, ofLine...)
		}
		if readErr == io.EOF {
			break
		}
	}

	if len(queries) == 0 {
		return nil, fault.New(fault.BadInput, "%s: there is no query", console.InputName(path))
	}
	return queries, nil
}
