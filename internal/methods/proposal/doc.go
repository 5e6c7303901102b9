// Package proposal is the interface between the planner and the families while a query is planned: the job, its memory of plans,
// its clock, and the question that a family answers by a proposal.
//
// A Job has the network, the settings and the query that is planned for. A Proposer is a family's answer: estimates with
// their price as an assignment, or nothing. The planner (package plan) divides the budget, asks families in its sequence
// and chooses.
package proposal
