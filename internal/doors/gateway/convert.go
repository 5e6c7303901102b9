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

// convertModel answers with the model file that is the body in another format.
func (g *Gateway) convertModel(c *call) error {
	parameters := c.request.URL.Query()
	if parameters.Get("to") == "" {
		return badRequest("to is missing: the format to convert to")
	}
	m, err := parseModel(c.body, parameters.Get("format"), g.limits.Body)
	if err != nil {
		return badRequest("model: %w", err)
	}
	return c.writeModel(m, parameters.Get("to"))
}

// writeModel answers with a model in a format, "" for the native one.
func (c *call) writeModel(m *factorgraph.Model, format string) (err error) {
	target := formats.JSON
	if format != "" {
		if target, err = formats.Parse(format); err != nil {
			return err
		}
	}
	text := heldText{call: c}
	if err := formats.Write(&text, target, m); err != nil {
		return err
	}
	kind := "text/plain; charset=utf-8"
	if target == formats.JSON {
		kind = "application/json; charset=utf-8"
	}
	c.response.Header().Set("Content-Type", kind)
	if losses := formats.Losses(target, m); len(losses) > 0 {
		c.response.Header().Set(lossesHeader, url.PathEscape(strings.Join(losses, "; ")))
	}
	return c.writeBody(http.StatusOK, text.buffer.Bytes())
}

// heldText is a text that counts among Limits.Bodies while it grows: tables of a short CP form may be long.
type heldText struct {
	call   *call
	buffer bytes.Buffer
}

// Write appends to the text, if there is room.
func (t *heldText) Write(b []byte) (int, error) {
	if err := t.call.reserveBytes(int64(len(b))); err != nil {
		return 0, err
	}
	return t.buffer.Write(b)
}
