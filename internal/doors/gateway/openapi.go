package gateway

import (
	"net/http"
	"strings"

	"github.com/basetensor/basetensor/schemas"
)

// openAPI answers with the document of these operations.
func (g *Gateway) openAPI(c *call) error { return c.schema("openapi.json") }

// schemaFile answers with a schema, which the document refers to.
func (g *Gateway) schemaFile(c *call) error { return c.schema(strings.TrimPrefix(c.r.URL.Path, "/")) }

func (c *call) schema(name string) error {
	b, err := schemas.FS.ReadFile(name)
	if err != nil {
		return notFound("no schema is called %.80q", name)
	}
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	return c.write(http.StatusOK, b)
}
