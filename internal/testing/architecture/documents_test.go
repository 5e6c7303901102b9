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

// pages returns the text of every Markdown file that git knows, by its path from the root.
func pages(t *testing.T) map[string]string {
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

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(text string) (anchors []string) {
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		title := markdownLink.ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(notInAnchors.ReplaceAllString(title, ""), " ", "-"))
	}
	return anchors
}

// TestLinks: every relative link of a page leads to a file, and its anchor to a heading.
func TestLinks(t *testing.T) {
	texts := pages(t)
	found := 0
	for page, text := range texts {
		for _, m := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			target := page
			if m[1] != "" {
				target = path.Join(path.Dir(page), m[1])
			}
			if _, err := os.Stat("../../../" + target); err != nil {
				t.Errorf("%s: there is no %s", page, target)
			} else if anchor := strings.TrimPrefix(m[2], "#"); anchor != "" && !slices.Contains(anchorsOf(texts[target]), anchor) {
				t.Errorf("%s: %s has no heading for #%s", page, target, anchor)
			}
		}
	}
	if found == 0 {
		t.Error("no page has a link")
	}
}
