package pull

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"penstock/infra/door"
	"penstock/schemas/control"
)

// TestThePage: the answer that docs/split-pull.md shows is one, and it names every
// failure that there is and no other.
func TestThePage(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../../docs/split-pull.md")
	ok(t, err)
	page := string(b)
	body := regexp.MustCompile(`(?s)\n(\{"component".*?\})\n` + "```").FindStringSubmatch(page)
	if body == nil {
		t.Fatal("the page shows no answer")
	}
	a, err := control.DecodeSplitAnswer([]byte(body[1]))
	if err != nil || a.Epoch != 412 || len(a.Ratios) != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	_, failures, found := strings.Cut(page, "**What goes wrong.**")
	if !found {
		t.Fatal("the page says nothing of failures")
	}
	var told []string
	for _, row := range regexp.MustCompile(`(?m)^\| [45]\d\d.*? \| (.*?) \|`).FindAllStringSubmatch(failures, -1) {
		for _, word := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			told = append(told, word[1])
		}
	}
	slices.Sort(told)
	want := []string{failPath, failQuery, failComponent, failSite, failNotReady, failWaiting, failLimited, failMethod, door.WordToken, door.WordHost, failUnavailable}
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("the page tells of %q, and there are %q", told, want)
	}
}
