package architecture

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
	codeBlock    = regexp.MustCompile("(?ms)^```.*?^```|^    .*?$")
)

// readPages returns the text of every Markdown file in the repository, by its path from the root. It skips the test if there is no git.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md")
	list.Dir = "../../.."
	out, err := list.Output()
	if err != nil {
		t.Skip("no git here: ", err)
	}
	texts := map[string]string{}
	for _, name := range strings.Fields(string(out)) {
		if text, err := os.ReadFile("../../../" + name); err == nil {
			texts[name] = string(text)
		}
	}
	return texts
}

// anchorsOf returns the anchors that GitHub makes of the headings of a page: "The method, in short" becomes the-method-in-short.
func anchorsOf(text string) (anchors []string) {
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		title := markdownLink.ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(notInAnchors.ReplaceAllString(title, ""), " ", "-"))
	}
	return anchors
}

// TestLinks: every relative link of a page leads to a file, and its anchor to a heading.
func TestLinks(t *testing.T) {
	texts := readPages(t)
	links := 0
	for page, text := range texts {
		for _, m := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			linkPath, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(linkPath, "://") {
				continue // not relative
			}
			links++
			target := page
			if linkPath != "" {
				target = path.Join(path.Dir(page), linkPath)
			}
			if _, err := os.Stat("../../../" + target); err != nil {
				t.Errorf("%s: there is no %s", page, target)
			} else if anchor != "" && !slices.Contains(anchorsOf(texts[target]), anchor) {
				t.Errorf("%s: %s has no heading for #%s", page, target, anchor)
			}
		}
	}
	if links == 0 {
		t.Error("no page has a link")
	}
}
