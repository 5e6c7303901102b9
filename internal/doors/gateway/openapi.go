package gateway

import (
	"net/http"
	"strings"

	"github.com/basetensor/basetensor/schemas"
)

// getOpenAPI answers with the document of these operations.
func (g *Gateway) getOpenAPI(c *call) error { return c.writeSchema("openapi.json") }

// getSchema answers with a schema to which the document refers.
func (g *Gateway) getSchema(c *call) error {
	return c.writeSchema(strings.TrimPrefix(c.request.URL.Path, "/"))
}

// writeSchema answers with a file of the published schemas.
func (c *call) writeSchema(name string) error {
	b, err := schemas.FS.ReadFile(name)
	if err != nil {
		return notFound("no schema is called %.80q", name)
	}
	c.response.Header().Set("Content-Type", "application/json; charset=utf-8")
	return c.writeBody(http.StatusOK, b)
}
