// Package schemas embeds the JSON Schemas of everything that leaves or enters the system: the messages, the
// result line of `btn infer --json`, the native model file; the AsyncAPI document of the subjects, and the OpenAPI document
// of the gateway.
//
// All schemas are JSON Schema 2020-12. They describe the JSON view of a message (codec.View): bin fields are
// base64 strings.
package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

// Base is the URL under which the schemas know one another: the $id of a schema is Base and its path in FS.
const Base = "https://github.com/basetensor/basetensor/schemas/"

// FS holds *.schema.json, asyncapi.yaml, openapi.json, messages/ with a schema per message, and samples/ with samples of each,
// valid and invalid.
//
//go:embed *.schema.json asyncapi.yaml openapi.json messages samples
var FS embed.FS

// Message returns the schema of the message of this name: "model", "network", "task" and so on.
func Message(name string) ([]byte, error) {
	b, err := FS.ReadFile("messages/" + name + ".schema.json")
	if err != nil {
		return nil, fmt.Errorf("schemas: no message is called %q", name)
	}
	return b, nil
}

// Paths returns the paths of all schemas in FS, sorted.
func Paths() []string {
	var paths []string
	_ = fs.WalkDir(FS, ".", func(path string, _ fs.DirEntry, err error) error { // an embedded tree cannot fail
		if err == nil && strings.HasSuffix(path, ".schema.json") {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}
