package main

// A file of queries: one JSON object per line.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/internal/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// queryJSON is a line of a file of queries.
type queryJSON struct {
	Evidence    named.Values     `json:"evidence"`
	Marginals   bool             `json:"marginals"`
	Joint       []named.Variable `json:"joint"`
	Targets     []named.Variable `json:"targets"`
	Gradients   bool             `json:"gradients"`
	MPE         bool             `json:"mpe"`
	Map         []named.Variable `json:"map"`
	Samples     int              `json:"samples"`
	Seed        uint64           `json:"seed"`
	Weight      float64          `json:"weight"`
	Information *askJSON         `json:"information"`
	Sensitive   named.Values     `json:"sensitivity"`
	Event       named.Values     `json:"event"`
}

// queryFile reads the queries of a file. A line with an event gives two: what is given, and that
// with the event, asked over it. Their labels are FILE:LINE. Errors have the code bad_input and the
// line.
func queryFile(open console.Opener, path string, l *factorgraph.Labels) ([]query.Query, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var queries []query.Query
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fault.New(console.CodeOfInput(err), "%s: %w", console.Called(path), err)
		}
		label := fmt.Sprintf("%s:%d", path, n)
		if line := bytes.TrimSpace(line); len(line) > 0 {
			more, err := queryLine(line, label, len(queries), l)
			if err != nil {
				return nil, fault.New(fault.BadInput, "%s: %w", label, err)
			}
			queries = append(queries, more...)
		}
		if err == io.EOF {
			break
		}
	}

	if len(queries) == 0 {
		return nil, fault.New(fault.BadInput, "%s: there is no query", console.Called(path))
	}
	return queries, nil
}

// queryLine returns the one or two queries of a line, the first of them at position at.
func queryLine(line []byte, label string, at int, l *factorgraph.Labels) ([]query.Query, error) {
	var q queryJSON
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON object on the line")
	}

	given, err := q.Evidence.Evidence(l)
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	first := query.Query{Evidence: given, EvidenceFile: label, Marginals: q.Marginals, Gradients: q.Gradients, Weight: q.Weight}
	if first.Joint, err = named.Variables(l, q.Joint); err != nil {
		return nil, fmt.Errorf("joint: %w", err)
	}
	if first.Targets, err = named.Variables(l, q.Targets); err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}
	if q.Information != nil {
		if first.Information, _, err = q.Information.ask(l); err != nil {
			return nil, fmt.Errorf("information: %w", err)
		}
	}

	if first.Map, err = named.Variables(l, q.Map); err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	if q.Sensitive != nil {
		if first.Sensitivity, err = target(l, q.Sensitive); err != nil {
			return nil, fmt.Errorf("sensitivity: %w", err)
		}
	}
	first.MPE, first.Samples, first.Seed = q.MPE, q.Samples, q.Seed

	if q.Event == nil {
		return []query.Query{first}, nil
	}
	if len(q.Event) == 0 {
		return nil, errors.New("event: it says nothing")
	}

	both, err := slices.Concat(q.Evidence, q.Event).Evidence(l)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	return []query.Query{first, {Evidence: both, EvidenceFile: label + " event", Over: at + 1}}, nil
}
