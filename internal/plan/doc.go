// Package plan chooses how the queries to a base tensor network are answered: exactly, by elimination, in
// count space, in regions or sliced; by a decomposition that package frobenius learns; or by a sequence of
// estimates that grows (truncated legs, regions, sampled components) until it settles or the deadline is near. Assign is the
// entry point of the stage.
//
// Every choice is a pure function of the network, the queries and the settings. Time enters only as a limit
// on searches. What was chosen is remembered by a Memo, under keys that contain AlgorithmVersion.
package plan
