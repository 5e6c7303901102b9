package faults

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Rows add up in a file over runs, and the page has their sums.
func TestRowsAddUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.csv")
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rows := []Row{
		{
			Class: "pause", Servers: "single", Seed: 7, Began: began, Took: 1.5, Jobs: 100, Faults: 3, Held: 4, Load: 2.5,
			Usual: times{time.Millisecond, time.Second}, Recover: times{10 * time.Millisecond, 2 * time.Second},
		},
		{
			Class: "pause", Servers: "single", Seed: 8, Began: began, Jobs: 50, Faults: 2, Lost: 1, Doubled: 2, Wrong: 3, Other: 4, Again: 5,
			Usual: times{0, 0}, Recover: times{30 * time.Millisecond},
		},
		{Class: "leader-kill", Servers: "cluster", Seed: 1, Began: began, Jobs: 10, Faults: 1, Usual: times{0, 0}},
	}
	for _, r := range rows {
		if err := Append(path, r); err != nil {
			t.Fatal(err)
		}
	}
	back, err := Read(path)
	if err != nil || !reflect.DeepEqual(back, rows) {
		t.Fatalf("%+v, %v; want %+v", back, err, rows)
	}
	for _, versions := range []string{"nats-server 1, redis-server 2", ""} { // the second page keeps the first one's
		if err := WritePage(path, versions); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(strings.TrimSuffix(path, ".csv") + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"**6 faults over 160 jobs: 1 lost, 2 doubled, 3 wrong", "nats-server 1, redis-server 2",
			"| pause (1 lost, 2 doubled, 3 wrong, 4 other): SIGSTOP of a worker", "| 5 | 30, 2000 |",
			"| leader-kill: SIGKILL of the leader", "| 1 | – |",
		} {
			if !strings.Contains(string(page), want) {
				t.Errorf("the page has no %q:\n%s", want, page)
			}
		}
	}
	if err := os.WriteFile(path, []byte("class,jobs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil {
		t.Error("a file with other columns was read")
	}
}

// Every class has a name of its own that can be asked for, and words for people.
func TestClasses(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range classes {
		if seen[c.name] || c.about == "" || c.strike == nil || c.every == 0 || c.parallel < 1 || c.worth < 1 || find(c.name) != c {
			t.Errorf("class %q", c.name)
		}
		seen[c.name] = true
		if _, err := choose(Options{Classes: []string{c.name}, Cluster: c.rules.needs.include(cluster)}); err != nil {
			t.Error(err)
		}
	}
	if _, err := choose(Options{Classes: []string{"none"}}); err == nil {
		t.Error("a class that there is not was chosen")
	}
}
