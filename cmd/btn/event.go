package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/internal/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// P(event | evidence), as the ratio of two queries.

// withEvent returns the queries and behind them, for each, one with its evidence and the event, a
// file or inline, asked over it. Errors name the file, and both files where evidence and event contradict each
// other.
func withEvent(open console.Opener, queries []query.Query, file string, l *factorgraph.Labels) ([]query.Query, error) {
	event, err := loadEvidence(open, file, l)
	if err != nil {
		return nil, err
	}
	if event.IsEmpty() {
		return nil, fault.New(fault.BadInput, "%s: the event says nothing", console.Called(file))
	}

	n := len(queries)
	for q := range n {
		given := queries[q]
		name := given.EvidenceFile
		if name == "" {
			name = "no evidence"
		}
		hard, soft := slices.Concat(given.Evidence.Hard, event.Hard), slices.Concat(given.Evidence.Soft, event.Soft)
		both, err := named.Normal(l, hard, soft)
		switch {
		case errors.Is(err, factorgraph.ErrContradictory):
			return nil, fault.Wrap(fault.BadInput,
				fmt.Errorf("the evidence in %s and the event in %s contradict each other: %w", name, file, err))
		case err != nil:
			return nil, fault.Wrap(fault.BadInput, fmt.Errorf("%s with %s: %w", name, file, err))
		}

		label := file
		if given.EvidenceFile != "" {
			label = given.EvidenceFile + " and " + file
		}
		queries = append(queries, query.Query{Evidence: both, EvidenceFile: label, Over: q + 1})
	}

	return queries, nil
}
