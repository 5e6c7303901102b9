// Package plan chooses how demands on a base tensor network are answered. Assign is the entry point of the stage.
//
// It knows no method. Exact answers come from the table methods.Exact, of which the first proposal is taken; package estimates divides the
// budget among methods whose estimates grow; assignments of values, and derivatives, have proposers of their own. This package decides
// which of them is asked, for which network (all of it, or the part that a question depends on), in which share of the time, and what
// follows if one does not fit. 'btn plan --why' prints the offers that were made and the rules that decided.
//
// Every choice is a pure function of the network, the queries and the settings. Time enters only as a limit
// on searches. Plans are remembered by a Memo, under keys that contain proposal.AlgorithmVersion.
package plan
