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

// exportData are the files from which the types of the public packages are read, by import path.
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

// TestNoInternalTypeIsPublic: every type that a public package shows has a name outside of this module.
func TestNoInternalTypeIsPublic(t *testing.T) {
	files := exportData(t)
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	found := map[string]*types.Package{}
	named := map[*types.TypeName]bool{} // internal types with a public name
	for _, pkg := range public {
		p, err := load.Import(module + "pkg/" + pkg)
		if err != nil {
			t.Fatal(err)
		}
		found[pkg] = p
		for _, name := range p.Scope().Names() {
			if of, ok := p.Scope().Lookup(name).(*types.TypeName); ok && of.Exported() && of.IsAlias() {
				if n, ok := types.Unalias(of.Type()).(*types.Named); ok {
					named[n.Obj()] = true
				}
			}
		}
	}
	for _, pkg := range public {
		w := &walk{t: t, named: named, seen: map[types.Type]bool{}}
		for _, name := range found[pkg].Scope().Names() {
			if of := found[pkg].Scope().Lookup(name); of.Exported() {
				w.object(pkg+"."+name, of)
			}
		}
	}
}

// walk looks at all types that others can reach.
type walk struct {
	t     *testing.T
	named map[*types.TypeName]bool
	seen  map[types.Type]bool
}

// object looks at what a name stands for.
func (w *walk) object(place string, of types.Object) {
	w.look(place, of.Type())
	named, ok := types.Unalias(of.Type()).(*types.Named)
	if _, isType := of.(*types.TypeName); !ok || !isType {
		return
	}
	w.look(place, named.Underlying())
	for m := range named.Methods() {
		if m.Exported() {
			w.look(place+"."+m.Name(), m.Type())
		}
	}
}

// look follows a type to those that it is made of.
func (w *walk) look(place string, of types.Type) {
	if of = types.Unalias(of); w.seen[of] {
		return
	}
	w.seen[of] = true
	switch of := of.(type) {
	case *types.Named:
		if p := of.Obj().Pkg(); p != nil && strings.HasPrefix(p.Path(), module+"internal/") && !w.named[of.Obj()] {
			w.t.Errorf("%s shows %s", place, of)
		}
		for arg := range of.TypeArgs().Types() {
			w.look(place, arg)
		}
	case *types.Map:
		w.look(place, of.Key())
		w.look(place, of.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.look(place, of.Elem())
	case *types.Struct:
		for f := range of.Fields() {
			if f.Exported() || f.Embedded() {
				w.look(place+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range of.Methods() {
			w.look(place+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		w.look(place, of.Params())
		w.look(place, of.Results())
	case *types.Tuple:
		for v := range of.Variables() {
			w.look(place, v.Type())
		}
	}
}
