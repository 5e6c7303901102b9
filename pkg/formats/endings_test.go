package formats

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEndingsOfOtherDoors: the page and the Python client know the endings of the table, and the page names every format.
func TestEndingsOfOtherDoors(t *testing.T) {
	want := map[string]string{}
	for _, f := range table {
		for _, end := range f.endings {
			want[strings.TrimPrefix(end, ".")] = string(f.name)
		}
	}
	page := read(t, "../../internal/doors/page/static/open.js")
	for name, c := range map[string]struct{ text, begins, pair string }{
		"page":   {page, "const endings = {", `(\w+): '(\w+)'`},
		"python": {read(t, "../../clients/python/src/basetensor/_source.py"), "FORMATS = {", `"\.(\w+)": "(\w+)"`},
	} {
		_, list, _ := strings.Cut(c.text, c.begins)
		list, _, _ = strings.Cut(list, "}")
		got := map[string]string{}
		for _, pair := range regexp.MustCompile(c.pair).FindAllStringSubmatch(list, -1) {
			got[pair[1]] = pair[2]
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	_, kinds, _ := strings.Cut(page, "export const kinds = ")
	kinds, _, _ = strings.Cut(kinds, "\n")
	for _, f := range table {
		if !strings.Contains(kinds, strings.ToUpper(string(f.name))) {
			t.Errorf("the page does not name %s: %s", f.name, kinds)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
