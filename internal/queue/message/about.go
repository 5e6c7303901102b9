package message

import (
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Headers of requests, of the messages that follow from them and of answers, for lists of jobs and logs: the model and the
// question. Nothing relies on them.
const (
	HeaderModel    = "Btn-Model"
	HeaderQuestion = "Btn-Question"
)

// mostAbout is the length of either value.
const mostAbout = 128

// About describes a request.
type About struct {
	Model    string // the digest of a registered one, or its size
	Question string // the names of the fields that ask for more than ln Z
}

// AboutOf describes a request.
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
		a.Question = question(&r.Queries[0])
	default:
		a.Question = fmt.Sprintf("%d queries: %s", len(r.Queries), question(&r.Queries[0]))
	}
	return a
}

// question names what a query asks beside ln Z.
func question(q *query.Query) string {
	if asked := q.Asked(); len(asked) > 0 {
		return strings.Join(asked, ", ")
	}
	return "ln Z"
}

// AboutIn reads the description in headers. Values that are no short printable text count as absent.
func AboutIn(h map[string][]string) About {
	read := func(name string) string {
		hidden := func(c rune) bool { return c < ' ' || c > '~' }
		if len(h[name]) != 1 || len(h[name][0]) > mostAbout || strings.ContainsFunc(h[name][0], hidden) {
			return ""
		}
		return h[name][0]
	}
	return About{read(HeaderModel), read(HeaderQuestion)}
}

// Into writes the description into headers.
func (a About) Into(h map[string][]string) {
	for name, value := range map[string]string{HeaderModel: a.Model, HeaderQuestion: a.Question} {
		if value != "" {
			h[name] = []string{value}
		}
	}
}
