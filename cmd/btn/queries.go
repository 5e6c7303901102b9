package main

// A file of queries: one JSON object per line.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/internal/jsontext"
	"github.com/basetensor/basetensor/internal/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// queryFile reads the queries of a file. A line with an event gives two: the evidence, and the evidence with the event,
// asked over it. Their labels are FILE:LINE. Errors have the code bad_input and the line.
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
	var q named.Query
	if err := jsontext.Strict(line, &q); err != nil {
		return nil, err
	}
	return q.Queries(l, label, at)
}
