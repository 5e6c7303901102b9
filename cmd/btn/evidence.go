package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// noEvidence as the value of --evid turns off the evidence file beside the model.
const noEvidence = "none"

// evidenceBeside returns the evidence file that belongs to a model; "" if there is none. It is MODEL.evid, and for
// MODEL.gz also MODEL.evid without .gz in the middle, compressed or not.
func evidenceBeside(model string) (string, error) {
	if model == console.StandardInput {
		return "", nil
	}
	names := []string{model + ".evid"}
	if bare, ok := strings.CutSuffix(model, console.Zipped); ok {
		names = append(names, bare+".evid", bare+".evid"+console.Zipped)
	}
	for _, name := range names {
		_, err := os.Stat(name)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Wrap(fault.BadInput, err)
		}
	}

	return "", nil
}

// loadQueries returns one query for each evidence. Without any it takes the evidence file beside the model, if there is
// one. "none" stands for no evidence. If a file has no observation, say gets a line about it.
func loadQueries(
	open console.Opener, model string, files []string, l *factorgraph.Labels, say io.Writer,
) ([]query.Query, error) {
	// which files
	if len(files) == 0 {
		file, err := evidenceBeside(model)
		if err != nil {
			return nil, err
		}
		if file == "" {
			file = noEvidence
		}
		files = []string{file}
	}

	// a query for each
	queries := make([]query.Query, len(files))
	for i, file := range files {
		if file == noEvidence {
			continue
		}
		evidence, err := loadEvidence(open, file, l)
		if err != nil {
			return nil, err
		}
		if evidence.IsEmpty() {
			fmt.Fprintf(say, "btn: %s has no observation: the query is asked without evidence\n", console.InputName(file))
		}
		queries[i].Evidence, queries[i].EvidenceFile = evidence, file
	}

	return queries, nil
}

// loadEvidence reads an evidence file, or evidence that is itself the argument. Errors name it.
func loadEvidence(open console.Opener, name string, l *factorgraph.Labels) (e factorgraph.Evidence, err error) {
	if isInline(name) {
		e, err = named.Evidence(l, name)
	} else if f, failed := open(name); errors.Is(failed, fs.ErrNotExist) {
		return e, fault.New(fault.BadInput, "%s: no file has this name, and it is no evidence%s", name, evidenceExample(l, name))
	} else if failed != nil {
		return e, failed
	} else {
		defer f.Close()
		e, err = named.Read(l, f)
	}
	if err != nil {
		return e, fault.Wrap(console.CodeOfInput(err), fmt.Errorf("%s: %w", console.InputName(name), err))
	}
	return e, nil
}

// evidenceExample returns the end of an error: an example of evidence with names of the model, about the variable
// called name if there is one.
func evidenceExample(l *factorgraph.Labels, name string) string {
	if len(l.Domains()) == 0 {
		return ""
	}
	text := ""
	v, err := l.Variable(name)
	if err != nil { // no variable has the name: the example is about the first one
		v = 0
	} else if _, err := l.Value(v, ""); err != nil { // the error lists the values
		_, values, _ := strings.Cut(err.Error(), ": ")
		text = fmt.Sprintf(" (%s is a variable: %s)", name, values)
	}
	last := l.OfValue(v, l.Domains()[v]-1)
	return fmt.Sprintf("%s: VARIABLE=VALUE,… is, as %s=%s, or a JSON object, or a file with either", text, l.OfVariable(v), last)
}

// isInline reports whether an argument is evidence itself: a JSON object, or assignments unless a file has that name.
func isInline(name string) bool {
	if !named.Inline(name) {
		return false
	}
	_, err := os.Stat(name)
	return err != nil
}

// addEvents appends, for each query, another one with its evidence and the event. Over in the appended query names the given one: the
// ratio of their Z is the probability of the event under the evidence. The event is in a file, or is written in the argument as evidence
// is. Errors name both files if evidence and event contradict each other.
func addEvents(open console.Opener, queries []query.Query, file string, l *factorgraph.Labels) ([]query.Query, error) {
	event, err := loadEvidence(open, file, l)
	if err != nil {
		return nil, err
	}
	if event.IsEmpty() {
		return nil, fault.New(fault.BadInput, "%s: the event says nothing", console.InputName(file))
	}

	n := len(queries)
	for q := range n {
		// the evidence of both
		given := queries[q]
		name := given.EvidenceFile
		if name == "" {
			name = "no evidence"
		}
		hard, soft := slices.Concat(given.Evidence.Hard, event.Hard), slices.Concat(given.Evidence.Soft, event.Soft)
		joint, err := named.Normal(l, hard, soft)
		switch {
		case errors.Is(err, factorgraph.ErrContradictory):
			return nil, fault.Wrap(fault.BadInput,
				fmt.Errorf("the evidence in %s and the event in %s contradict each other: %w", name, file, err))
		case err != nil:
			return nil, fault.Wrap(fault.BadInput, fmt.Errorf("%s with %s: %w", name, file, err))
		}

		// the query of both, over the one of the evidence
		label := file
		if given.EvidenceFile != "" {
			label = given.EvidenceFile + " and " + file
		}
		over := q + 1 // its number from 1 on, as 0 stands for none
		queries = append(queries, query.Query{Evidence: joint, EvidenceFile: label, Over: over, Do: given.Do, Believe: given.Believe})
	}

	return queries, nil
}
