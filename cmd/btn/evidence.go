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

// beside returns the evidence file that belongs to a model: MODEL.evid, and for MODEL.gz also that
// of the model without .gz, itself compressed or not; "" if there is none.
func beside(model string) (string, error) {
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

// loadQueries makes one query per evidence file. Without any, the file beside the model is used where there is one; "none" stands for no
// evidence. A file without an observation is as good as none, and say gets a line about it.
func loadQueries(
	open console.Opener, model string, files []string, l *factorgraph.Labels, say io.Writer,
) ([]query.Query, error) {
	if len(files) == 0 {
		file, err := beside(model)
		if err != nil {
			return nil, err
		}
		if file == "" {
			file = noEvidence
		}
		files = []string{file}
	}

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
			fmt.Fprintf(say, "btn: %s has no observation: the query is asked without evidence\n", console.Called(file))
		}
		queries[i].Evidence, queries[i].EvidenceFile = evidence, file
	}

	return queries, nil
}

// loadEvidence reads an evidence file, or evidence that is itself the argument. Errors name it.
func loadEvidence(open console.Opener, name string, l *factorgraph.Labels) (e factorgraph.Evidence, err error) {
	if inline(name) {
		e, err = named.Evidence(l, name)
	} else if f, failed := open(name); errors.Is(failed, fs.ErrNotExist) {
		return e, fault.New(fault.BadInput, "%s: no file has this name, and it is no evidence%s", name, evidenceLike(l, name))
	} else if failed != nil {
		return e, failed
	} else {
		defer f.Close()
		e, err = named.Read(l, f)
	}
	if err != nil {
		return e, fault.Wrap(console.CodeOfInput(err), fmt.Errorf("%s: %w", console.Called(name), err))
	}
	return e, nil
}

// evidenceLike is the end of an error: an example of evidence with names of the model, if possible about the variable of that name.
func evidenceLike(l *factorgraph.Labels, name string) string {
	if len(l.Domains()) == 0 {
		return ""
	}
	text := ""
	v, err := l.Variable(name)
	if err != nil {
		v = 0
	} else if _, err := l.Value(v, ""); err != nil {
		_, values, _ := strings.Cut(err.Error(), ": ")
		text = fmt.Sprintf(" (%s is a variable: %s)", name, values)
	}
	last := l.OfValue(v, l.Domains()[v]-1)
	return fmt.Sprintf("%s: VARIABLE=VALUE,… is, as %s=%s, or a JSON object, or a file with either", text, l.OfVariable(v), last)
}

// inline reports whether an argument is evidence itself: a JSON object, or assignments that no file is called as.
func inline(name string) bool {
	if !named.Inline(name) {
		return false
	}
	_, err := os.Stat(name)
	return err != nil
}

// withEvent returns the queries and behind them, for each, one with its evidence and the event, a file or inline, asked over it. Errors
// name the file, and both files where evidence and event contradict each other.
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
		queries = append(queries, query.Query{Evidence: both, EvidenceFile: label, Over: q + 1, Do: given.Do, Believe: given.Believe})
	}

	return queries, nil
}
