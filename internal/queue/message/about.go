package message

import (
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Headers of requests, of the messages that follow from them and of answers, for lists of jobs and logs: the model and
// the question. Nothing relies on them.
const (
	HeaderModel    = "Btn-Model"
	HeaderQuestion = "Btn-Question"
)

// maxAbout is the maximum length of the values of both headers.
const maxAbout = 128

// About describes a request.
type About struct {
	Model    string // the digest of a registered model, or the size of another
	Question string // the names of the fields that ask for more than ln Z
}

// AboutOf describes a request: its model, and what its first query asks.
func AboutOf(r *wire.Request) About {
	a := About{Model: r.ModelDigest}
	switch {
	case a.Model != "":
	case r.Model != nil:
		a.Model = fmt.Sprintf("%d variables", len(r.Model.Domains))
	default:
		a.Model = fmt.Sprintf("file of %d bytes", len(r.Text))
	}
	switch len(r.Queries) {
	case 0:
	case 1:
		a.Question = questionText(&r.Queries[0])
	default:
		a.Question = fmt.Sprintf("%d queries: %s", len(r.Queries), questionText(&r.Queries[0]))
	}
	return a
}

// questionText names what a query asks beside ln Z, or "ln Z" if it asks nothing else.
func questionText(q *query.Query) string {
	if names := q.Asked(); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "ln Z"
}

// AboutIn returns the description in headers. A value that is long, repeated or not printable counts as absent.
func AboutIn(h map[string][]string) About {
	shortText := func(name string) string {
		isUnprintable := func(c rune) bool { return c < ' ' || c > '~' }
		if len(h[name]) != 1 || len(h[name][0]) > maxAbout || strings.ContainsFunc(h[name][0], isUnprintable) {
			return ""
		}
		return h[name][0]
	}
	return About{shortText(HeaderModel), shortText(HeaderQuestion)}
}

// Into writes the description into headers.
func (a About) Into(h map[string][]string) {
	for name, value := range map[string]string{HeaderModel: a.Model, HeaderQuestion: a.Question} {
		if value != "" {
			h[name] = []string{value}
		}
	}
}
