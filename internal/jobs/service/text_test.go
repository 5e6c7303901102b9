package service_test

import (
	"os"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestTextInAnyFormat: the text of a message may be a file in any format that its beginning tells.
func TestTextInAnyFormat(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, allStages()...)
	for job, file := range map[string]string{
		"bif": "heating.bif", "xdsl": "engine.xdsl", "net": "orchard.net", "dsc": "mailserver.dsc", "xml": "parcel.xml",
	} {
		text, err := os.ReadFile("../../../examples/" + file)
		r.must(err)
		m, err := formats.Read(strings.NewReader(string(text)), "", file, uai.Limits{})
		r.must(err)
		w, p := request(t, job, m, query.Settings{}, observe(0), observe(1, 0))
		w.Model, w.Text = nil, string(text)
		r.submit(w)
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		if got, want := plain(t, r.wait(job).Results), plain(t, want); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}
