// Package simulation holds the pipeline's simulation: the real workers and clients over a server in memory (memlog), in a bubble of
// testing/synctest, whose clock runs as fast as there is nothing to do. A seed decides about the fate of every event: a message or an
// acknowledgement that is lost, comes twice, finds a full stream; workers that die at an effect and come again; connections that are cut.
//
// After each schedule it is checked that every stored job has exactly one answer, that its bits are those of infer.Run, that it came within
// a bounded time after the last fault, and that no work is left. make simulate runs many; a seed of a violation is printed with its
// transcript. Fates depend on the seed and on the event alone (its kind, its message, how often it happened before), so a seed meets the
// same faults again; the order of goroutines that run at the same time is the scheduler's, and may differ.
package simulation
