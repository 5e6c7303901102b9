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

// flagOf has the flag or argument of each field of a query.
var flagOf = map[string]string{
	"best": "--best", "map": "--map", "joint": "--joint", "targets": "--target", "gradients": "--gradients",
	"evidence.h": "--evid", "evidence.s": "--evid", "samples": "COUNT",
	"information": "VARIABLE", "information.target": "VARIABLE", "information.candidates": "--candidates", "information.utility": "--utility",
	"do": "--do", "believe": "--believe",
	"sensitivity": "VARIABLE=VALUE", "over": "--event", "job": "--job", "tenant": "--tenant", "deadline_ms": "--deadline",
}

// reasons have patterns of reasons that name fields of messages, and what people read instead.
var reasons = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`^it lists .* mpe is needed beside it$`),
		"it lists assignments of all variables, and --map asks for some of them: leave one out"},
	{regexp.MustCompile(`^(variable \d+|".*") is the target$`), "the variable that is asked about is no candidate"},
}

// reword returns an error in the words of the command line: with a flag in place of the field of a message, and without
// names of packages. If the queries come from a file (hasFile), the field stays, with the position of the query.
func reword(err error, hasFile bool) error {
	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return errOperators
	}
	groups := messageError.FindStringSubmatch(err.Error())
	if groups == nil {
		return errors.New(sentence.Text(err.Error()))
	}
	digits, field, reason := groups[1], groups[2], groups[3]
	position, _ := strconv.Atoi(digits) // 0 if the field is of no query
	return fieldError(position, field, reason, hasFile && digits != "")
}

// fieldError returns the error of a field of a query, with the flag in place of the field. If the query comes from a file
// (isOfFile), the field stays.
func fieldError(position int, field, reason string, isOfFile bool) error {
	if isOfFile {
		return fmt.Errorf("--queries: query %d: %s: %s", position+1, field, reason)
	}
	for _, r := range reasons {
		reason = r.pattern.ReplaceAllString(reason, r.replacement)
	}
	if flag, ok := flagOf[field]; ok {
		field = flag
	}
	return errors.New(field + ": " + reason)
}

// checkQueries checks queries for a model. Its errors have flags in the place of fields, and names in the place of positions.
func checkQueries(m *factorgraph.Model, queries []query.Query, hasFile bool) error {
	err := query.Check(m.Domains, queries)
	var ofField interface {
		Field() (position int, field string, reason error)
	}
	if !errors.As(err, &ofField) {
		return err
	}
	position, field, reason := ofField.Field()
	field, _, _ = strings.Cut(field, "[") // evidence.h of evidence.h[1]
	withNames := query.Names{Variables: m.Names, States: m.States}.Text(reason.Error())
	return fault.Wrap(fault.CodeOf(err), fieldError(position, field, withNames, hasFile))
}
