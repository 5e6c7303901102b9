package access_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Models, names and cancellations of tenants' users are in the audit log of the worker that stores them.
func TestTenantsAreRecorded(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	file := filepath.Join(t.TempDir(), "audit")
	audit, err := telemetry.OpenAudit(file, nil)
	must(t, err)
	stop := g.run(workers.Settings{Audit: audit})
	c, ctx := g.as("acme"), patience(t)
	digest, err := c.PutModel(ctx, &wire.Graph{Text: coin})
	must(t, err)
	_, err = c.NameModel(ctx, "coin", digest, "ann")
	must(t, err)
	_, err = c.Submit(ctx, wire.Request{Job: "acme.one", Text: coin, Queries: []query.Query{{}}})
	must(t, err)
	must(t, c.Cancel(ctx, "acme.one", "too late"))
	stop()
	text, err := os.ReadFile(file)
	must(t, err)
	for _, act := range []string{"put," + digest, "name,coin", "cancel,acme.one"} {
		action, what, _ := strings.Cut(act, ",")
		if want := fmt.Sprintf(`"who":"tenant acme","action":%q,"what":%q}`, action, what); !strings.Contains(string(text), want) {
			t.Errorf("no %s in:\n%s", want, text)
		}
	}
}
