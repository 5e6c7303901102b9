package main

import (
	"strings"
	"testing"
)

// rainFiles is one network in three formats. The row of wet where it rains is written on a line of its own, with the numbers given.
func rainFiles(numbers string) map[string]string {
	plain := strings.ReplaceAll(numbers, ",", "")
	return map[string]string{
		"rain.bif": "network n {}\nvariable rain { type discrete [ 2 ] { no, yes }; }\nvariable wet { type discrete [ 2 ] { no, yes }; }\n" +
			"probability ( rain ) { table 0.75, 0.25; }\nprobability ( wet | rain ) {\n  (no) 0.9, 0.1;\n  (yes) " + numbers + ";\n}\n",
		"rain.dsc": "belief network\nnode rain { type : discrete [2] = { \"no\", \"yes\" }; }\nnode wet { type : discrete [2] = { \"no\", \"yes\" }; }\n" +
			"probability(rain) { 0.75, 0.25; }\nprobability(wet | rain) {\n  (0) : 0.9, 0.1;\n  (1) : " + numbers + ";\n}\n",
		"rain.uai": "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 0.75 0.25 4\n0.9 0.1\n" + plain + "\n",
	}
}
