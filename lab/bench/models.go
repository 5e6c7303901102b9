// The models of a folder.

package bench

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Model is one model file.
type Model struct {
	Name      string // path below the folder with slashes and without its ending, e.g. grids/Grids_11
	Path      string // as it can be opened
	Variables int    // as its first line says; 0 where that cannot be read
}

// Endings of the files of models, and of weighted formulas.
var (
	modelEndings   = []string{".uai", ".uai.gz"}
	formulaEndings = []string{".cnf", ".cnf.gz"}
)

// cutEnding is a file's name without its ending, and whether it has one of them.
func cutEnding(name string, endings []string) (string, bool) {
	for _, ending := range endings {
		if base, ok := strings.CutSuffix(name, ending); ok {
			return base, true
		}
	}
	return name, false
}

// Find returns the models of the folder and of the folders in it (no deeper), sorted by name.
// Without filters all of them, else those for which one filter (path.Match) matches the name or the
// part behind its slash. With formulas they are those instead, *.cnf and *.cnf.gz.
// Errors are bad input: no folder, no model, a malformed filter.
func Find(folder string, filters []string, formulas bool) ([]Model, error) {
	endings, variables := modelEndings, variables
	if formulas {
		endings, variables = formulaEndings, header
	}
	for _, f := range filters {
		if _, err := path.Match(f, ""); err != nil {
			return nil, fault.New(fault.BadInput, "filter %q: %w", f, err)
		}
	}

	if info, err := os.Stat(folder); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	} else if !info.IsDir() {
		return nil, fault.New(fault.BadInput, "%s is no folder", folder)
	}

	var models []Model
	seen := 0
	add := func(below string, entries []os.DirEntry) {
		for _, e := range entries {
			base, ok := cutEnding(e.Name(), endings)
			if !ok || base == "" || e.IsDir() {
				continue
			}
			seen++
			if name := path.Join(below, base); matches(filters, name) {
				file := filepath.Join(folder, below, e.Name())
				models = append(models, Model{Name: name, Path: file, Variables: variables(file)})
			}
		}
	}

	top, err := os.ReadDir(folder)
	if err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	add("", top)
	for _, e := range top {
		// A link to a folder counts as a folder: model collections are large and live elsewhere.
		if info, err := os.Stat(filepath.Join(folder, e.Name())); err != nil || !info.IsDir() {
			continue
		}
		inner, err := os.ReadDir(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, err)
		}
		add(e.Name(), inner)
	}

	if len(models) == 0 {
		return nil, fault.New(fault.BadInput, "%s: of %d models (*%s) none is left by the filters %q",
			folder, seen, strings.Join(endings, ", *"), filters)
	}
	sort.Slice(models, func(i, j int) bool { return models[i].Name < models[j].Name })
	return models, nil
}

func matches(filters []string, name string) bool {
	for _, f := range filters {
		for _, candidate := range []string{name, path.Base(name)} {
			if ok, err := path.Match(f, candidate); err == nil && ok {
				return true
			}
		}
	}
	return len(filters) == 0
}

// variables reads the second word of a model file and no more: this process must stay small, because
// the kernel counts its memory into the peak of the processes it starts.
func variables(file string) int {
	f, text, err := open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	var kind string
	var n int
	if _, err := fmt.Fscan(bufio.NewReader(io.LimitReader(text, 4096)), &kind, &n); err != nil || n < 0 {
		return 0
	}
	return n
}

// open opens a file for reading its text, decompressed where its name says .gz. The file is to be closed.
func open(name string) (f *os.File, text io.Reader, err error) {
	if f, err = os.Open(name); err != nil || !strings.HasSuffix(name, packed) {
		return f, f, err
	}
	if text, err = gzip.NewReader(f); err != nil {
		f.Close()
	}
	return f, text, err
}

const packed = ".gz"
