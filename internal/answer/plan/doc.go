// Package plan chooses how the queries to a base tensor network are answered: exactly, by elimination, in
// count space, as a circuit or sliced; by a decomposition that package learned learns; or by a sequence of
// estimates that grows (truncated legs, regions, sampled components) until it settles or the deadline is near. Assign is the
// entry point of the stage.
//
// A family searches for its plans, and prices and writes them, in its own room; it answers a proposal.Ask. This package divides the
// budget, asks the families in sequence and chooses. A new exact family is a proposal.Proposer:
//
//	func Propose(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
//		// nil, nil: the family is not for this query
//		plan, hit, err := j.Remember("name of the family", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
//			return proposal.Exact(cost, parts...), nil
//		})
//		return proposal.Priced(plan, hit), err
//	}
//
// and a line with its name in methods.Firstly or methods.Heavily, at its place in the sequence: before an elimination order is
// looked for, or where none is cheap, before trees are. It is asked for Z, for marginals and for joint marginals alike. A family that
// is asked for by name is a proposal.Method, and a line of methods.Methods.
//
// Every choice is a pure function of the network, the queries and the settings. Time enters only as a limit
// on searches. Plans are remembered by a Memo, under keys that contain proposal.AlgorithmVersion.
package plan
