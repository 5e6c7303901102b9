// Package page is the web page of the gateway: HTML, style sheets and JavaScript modules as files, without a build step
// and without anything from elsewhere.
package page

import (
	"embed"
	"io/fs"
)

//go:embed static
var static embed.FS

// Files returns the files of the page. index.html is the page; the others are named by it.
func Files() fs.FS {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}
