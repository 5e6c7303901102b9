package gateway

// Models in other formats.

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
)

// lossesHeader is the header of a model file with the parts of the model that its format lacks, percent-encoded.
const lossesHeader = "Btn-Losses"

// convert answers with the model file that is the body in another format.
func (g *Gateway) convert(c *call) error {
	said := c.r.URL.Query()
	if said.Get("to") == "" {
		return bad("to is missing: the format to convert to")
	}
	m, err := parse(c.text, said.Get("format"), g.limits.Body)
	if err != nil {
		return bad("model: %w", err)
	}
	return c.written(m, said.Get("to"))
}

// written answers with a model in a format, "" for the native one.
func (c *call) written(m *factorgraph.Model, format string) (err error) {
	as := formats.JSON
	if format != "" {
		if as, err = formats.Parse(format); err != nil {
			return err
		}
	}
	text := heldText{c: c}
	if err := formats.Write(&text, as, m); err != nil {
		return err
	}
	kind := "text/plain; charset=utf-8"
	if as == formats.JSON {
		kind = "application/json; charset=utf-8"
	}
	c.w.Header().Set("Content-Type", kind)
	if losses := formats.Losses(as, m); len(losses) > 0 {
		c.w.Header().Set(lossesHeader, url.PathEscape(strings.Join(losses, "; ")))
	}
	return c.write(http.StatusOK, text.text.Bytes())
}

// heldText is a text that counts among Limits.Bodies while it grows: tables of a short CP form may be long.
type heldText struct {
	c    *call
	text bytes.Buffer
}

// Write appends, where there is room.
func (t *heldText) Write(b []byte) (int, error) {
	if err := t.c.hold(int64(len(b))); err != nil {
		return 0, err
	}
	return t.text.Write(b)
}
