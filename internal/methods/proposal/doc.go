// Package proposal is the interface between the planner and the methods while a query is planned.
//
// A Job has the network, the settings, the query that is planned for, and the memory of plans. A Proposer is how a method answers: it
// returns an assignment, which is a plan with its price, or nothing. The planner (package plan) divides the budget, asks the methods in
// sequence and chooses. The time for planning is kept in the context (clock.go).
package proposal
