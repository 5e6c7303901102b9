// Command generate writes the assembly of internal/base/kernel: the same loops for AVX2, AVX-512 and
// NEON. It is run by go generate in that folder, and TestGeneratedFilesAreCurrent compares.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
)

// main writes the generated files into the folder of package kernel.
func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".", "the folder of package kernel")
	flag.Parse()
	for name, text := range Files() {
		if err := os.WriteFile(filepath.Join(*dir, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// Files returns the generated files by name.
func Files() map[string][]byte {
	return map[string][]byte{
		"loops_avx2_amd64.s":   x86Loops(avx2),
		"loops_avx512_amd64.s": x86Loops(avx512),
		"loops_neon_arm64.s":   neonLoops(),
	}
}
