package architecture

import (
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// exportData returns the paths of the files from which the compiler reads the types of the public packages and of those that they depend
// on, by import path.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	args := []string{"list", "-C", modules[0], "-export", "-deps", "-json=ImportPath,Export"}
	for _, pkg := range public {
		args = append(args, "./pkg/"+pkg)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
}

// TestNoInternalTypeIsPublic: no type of internal/ can be reached from what a public package exports, unless a public package has an alias
// for it, so that others can name it.
func TestNoInternalTypeIsPublic(t *testing.T) {
	files := exportData(t)
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })

	// The public packages, and the types that they have an alias for.
	packages := map[string]*types.Package{}
	hasAlias := map[*types.TypeName]bool{}
	for _, pkg := range public {
		p, err := load.Import(module + "pkg/" + pkg)
		if err != nil {
			t.Fatal(err)
		}
		packages[pkg] = p
		for _, name := range p.Scope().Names() {
			if object, isType := p.Scope().Lookup(name).(*types.TypeName); isType && object.Exported() && object.IsAlias() {
				if n, isNamed := types.Unalias(object.Type()).(*types.Named); isNamed {
					hasAlias[n.Obj()] = true
				}
			}
		}
	}

	for _, pkg := range public {
		c := &typeChecker{t: t, hasAlias: hasAlias, isVisited: map[types.Type]bool{}}
		for _, name := range packages[pkg].Scope().Names() {
			if object := packages[pkg].Scope().Lookup(name); object.Exported() {
				c.checkObject(pkg+"."+name, object)
			}
		}
	}
}

// typeChecker checks all types that importers of a package can reach.
type typeChecker struct {
	t         *testing.T
	hasAlias  map[*types.TypeName]bool // types that a public package has an alias for
	isVisited map[types.Type]bool
}

// checkObject checks the type of an exported name. If the name is that of a type, it also checks what the type is made of and its exported
// methods. place is the name for messages.
func (c *typeChecker) checkObject(place string, object types.Object) {
	c.checkType(place, object.Type())
	named, isNamed := types.Unalias(object.Type()).(*types.Named)
	if _, isType := object.(*types.TypeName); !isNamed || !isType {
		return
	}
	c.checkType(place, named.Underlying())
	for m := range named.Methods() {
		if m.Exported() {
			c.checkType(place+"."+m.Name(), m.Type())
		}
	}
}

// checkType fails the test if a type is of internal/ and has no alias, and checks the types that it is made of: elements, exported fields,
// parameters and so on. place says where the type was found.
func (c *typeChecker) checkType(place string, t types.Type) {
	if t = types.Unalias(t); c.isVisited[t] {
		return
	}
	c.isVisited[t] = true
	switch t := t.(type) {
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && strings.HasPrefix(p.Path(), module+"internal/") && !c.hasAlias[t.Obj()] {
			c.t.Errorf("%s shows %s", place, t)
		}
		for arg := range t.TypeArgs().Types() {
			c.checkType(place, arg)
		}
	case *types.Map:
		c.checkType(place, t.Key())
		c.checkType(place, t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		c.checkType(place, t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				c.checkType(place+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			c.checkType(place+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		c.checkType(place, t.Params())
		c.checkType(place, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			c.checkType(place, v.Type())
		}
	}
}
