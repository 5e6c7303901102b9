package gateway

// The page, for people: files that are part of the program.

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"

	"github.com/basetensor/basetensor/internal/doors/page"
)

// getPage answers with a file of the page, or with index.html if the address names none.
func (g *Gateway) getPage(c *call) error {
	name := c.request.PathValue("file")
	if name == "" {
		name = "index.html"
	}
	b, err := fs.ReadFile(page.Files(), name)
	if err != nil {
		return notFound("the page has no file %.80q", name)
	}
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := c.response.Header()
	h.Set("Content-Type", kinds[path.Ext(name)])
	h.Set("Cache-Control", "no-cache") // kept, and asked for again: another release has other files under these names
	h.Set("ETag", tag)
	if c.request.Header.Get("If-None-Match") == tag {
		return c.writeBody(http.StatusNotModified, nil)
	}
	return c.writeBody(http.StatusOK, b)
}

// kinds are the content types of the files, independent of the machine's table of types.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}
