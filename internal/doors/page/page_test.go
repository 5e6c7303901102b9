package page

import (
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
)

// reference finds the files that a file of the page loads.
var reference = regexp.MustCompile(`(?:from |import |href=|src=)['"]([^'"#]+)['"]`)

// TestFilesAreWholeAndAlone: every file that a file names is there, and nothing is from elsewhere.
func TestFilesAreWholeAndAlone(t *testing.T) {
	files := Files()
	used := map[string]bool{"index.html": true}
	all, err := fs.Glob(files, "*")
	if err != nil || len(all) < 10 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, name := range all {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reference.FindAllStringSubmatch(string(b), -1) {
			of := path.Base(m[1])
			used[of] = true
			if _, err := fs.Stat(files, of); err != nil || m[1] != "page/"+of && m[1] != "./"+of {
				t.Errorf("%s refers to %q: %v", name, m[1], err)
			}
		}
	}
	for _, name := range all {
		if !used[name] {
			t.Errorf("nothing refers to %s", name)
		}
	}
}

// TestTheExampleIsThatOfTheExamples: the page opens the network of examples/asia.json.
func TestTheExampleIsThatOfTheExamples(t *testing.T) {
	want, err := os.ReadFile("../../../examples/asia.json")
	if err != nil {
		t.Fatal(err)
	}
	module, err := fs.ReadFile(Files(), "example.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, got, _ := strings.Cut(string(module), "export default "); got != string(want) {
		t.Error("example.js is another model than examples/asia.json")
	}
}

// TestFormatsAreThoseThatAreWritten: the page offers to save a model in every format that is written, and in no other.
func TestFormatsAreThoseThatAreWritten(t *testing.T) {
	module, err := fs.ReadFile(Files(), "save.js")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(module), "const formats = [")
	list, _, _ = strings.Cut(list, "\n]")
	offered := map[formats.Format]bool{}
	for _, m := range regexp.MustCompile(`\['([a-z]+)', '`).FindAllStringSubmatch(list, -1) {
		offered[formats.Format(m[1])] = true
	}
	_, unknown := formats.Parse("?") // its error lists all
	_, names, _ := strings.Cut(unknown.Error(), "there are ")
	for name := range strings.SplitSeq(names, ", ") {
		as := formats.Format(name)
		err := formats.Write(io.Discard, as, &factorgraph.Model{Domains: []int{2}})
		if written := err == nil || !strings.Contains(err.Error(), "is not written"); written != offered[as] {
			t.Errorf("%s is written: %v, offered: %v", as, written, offered[as])
		}
		delete(offered, as)
	}
	if len(offered) > 0 {
		t.Errorf("%v are no formats", offered)
	}
}

// TestTextStaysText: nothing makes elements of text, and nothing is inline that the content security policy refuses.
func TestTextStaysText(t *testing.T) {
	files := Files()
	all, err := fs.Glob(files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser",
			"createContextualFragment",
			"srcdoc", "javascript:", " style=", " onclick=", " onerror=", " onload=",
		} {
			if strings.Contains(string(b), word) {
				t.Errorf("%s has %s", name, word)
			}
		}
	}
}
