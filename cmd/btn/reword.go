package main

// Errors of messages, in the words of the command line.

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/nats-io/nats.go/jetstream"
)

// messageError is the error of a field of a request: the position of its query, if it is of one, the field and the reason.
var messageError = regexp.MustCompile(`^model\.(?:queries\[(\d+)\]\.)?([a-z_]+(?:\.[a-z_]+)?)\S*: wire: invalid message: (.*)$`)

// flagOf is the flag or argument of a query's field.
var flagOf = map[string]string{
	"best": "--best", "map": "--map", "joint": "--joint", "targets": "--target", "gradients": "--gradients",
	"evidence.h": "--evid", "evidence.s": "--evid", "samples": "COUNT",
	"information": "VARIABLE", "information.target": "VARIABLE", "information.candidates": "--candidates", "information.utility": "--utility",
	"do": "--do", "believe": "--believe",
	"sensitivity": "VARIABLE=VALUE", "over": "--event", "job": "--job", "tenant": "--tenant", "deadline_ms": "--deadline",
}

// reasons are reasons that name fields of messages, with those for people.
var reasons = []struct {
	of     *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`^it lists .* mpe is needed beside it$`),
		"it lists assignments of all variables, and --map asks for some of them: leave one out"},
	{regexp.MustCompile(`^(variable \d+|".*") is the target$`), "the variable that is asked about is no candidate"},
}

// reword returns an error of a message with the flag in the place of its field, and others without the names of packages. Fields of a file
// of queries are left, with the position of the query.
func reword(err error, hasFile bool) error {
	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return errOperators
	}
	groups := messageError.FindStringSubmatch(err.Error())
	if groups == nil {
		return errors.New(sentence.Text(err.Error()))
	}
	position, _ := strconv.Atoi(groups[1]) // digits
	return inFlags(position, groups[2], groups[3], hasFile && groups[1] != "")
}

// inFlags is the error of a field of a query with the flag in the place of the field, but of a query of a file.
func inFlags(position int, field, reason string, isOfFile bool) error {
	if isOfFile {
		return fmt.Errorf("--queries: query %d: %s: %s", position+1, field, reason)
	}
	for _, r := range reasons {
		reason = r.of.ReplaceAllString(reason, r.reason)
	}
	if flag, ok := flagOf[field]; ok {
		field = flag
	}
	return errors.New(field + ": " + reason)
}

// checkQueries checks queries for a model. Its errors have flags in the place of fields, and names in the place of positions.
func checkQueries(m *factorgraph.Model, queries []query.Query, hasFile bool) error {
	err := query.Check(m.Domains, queries)
	var wrong interface {
		Field() (position int, field string, reason error)
	}
	if !errors.As(err, &wrong) {
		return err
	}
	position, field, reason := wrong.Field()
	field, _, _ = strings.Cut(field, "[") // as evidence.h[1]
	named := query.Names{Variables: m.Names, States: m.States}.Text(reason.Error())
	return fault.Wrap(fault.CodeOf(err), inFlags(position, field, named, hasFile))
}
