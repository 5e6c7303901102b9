package region

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

func cubeEdges(n int) (edges [][2]int) {
	for i := range n * n * n {
		if i%n+1 < n {
			edges = append(edges, [2]int{i, i + 1})
		}
		if i/n%n+1 < n {
			edges = append(edges, [2]int{i, i + n})
		}
		if i/n/n+1 < n {
			edges = append(edges, [2]int{i, i + n*n})
		}
	}
	return edges
}

func TestPlanTimes(t *testing.T) {
	if os.Getenv("REGION_MEASURE") != "plans" {
		t.Skip("REGION_MEASURE is not plans")
	}
	for _, c := range []struct {
		name  string
		edges [][2]int
		n     int
		o     Options
	}{
		{"cube 20", cubeEdges(20), 8000, Options{Kind: Loops, Size: 4}},
		{"cube 20", cubeEdges(20), 8000, Options{Kind: Loops, Size: 6}},
		{"cube 20", cubeEdges(20), 8000, Options{Kind: Balls, Size: 1}},
		{"cube 20", cubeEdges(20), 8000, Options{Kind: Balls, Size: 2}},
		{"grid 100", gridEdges(100, 100), 10000, Options{Kind: Balls, Size: 3}},
		{"grid 300", gridEdges(300, 300), 90000, Options{Kind: Loops, Size: 6}},
	} {
		c.o.MaxRegions = 4_000_000
		e := ising(c.n, c.edges, 0.5, 1)
		begin := time.Now()
		c.o.Moves = 1 << 36
		f, err := Plan(context.Background(), e.Hypergraph(), c.o)
		fmt.Printf("%s %v: %.1f s", c.name, c.o, time.Since(begin).Seconds())
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf(", %d regions, %d legs, width %d, %g flops\n",
			f.Len(), len(f.source.(*list).legs), f.Widest, f.Flops)
	}
}
