// Package bayesnet reads the files of Bayesian networks: BIF, XMLBIF, XDSL, Hugin NET and DSC, which it writes as well, Netica's DNE,
// GeNIe's DSL and OpenMarkov's ProbModelXML.
//
// A node becomes a variable with its name and the names of its states, and its table a factor whose scope is the node's
// parents in the file's order and the node itself last, so that a row of the table is a distribution. Variables and factors
// keep the file's order, numbers the digits of the file: rows that do not sum to 1 stay as they are.
//
// Tables may have as many entries as the file has bytes and a million more, so that a short file takes little memory. Errors
// name line, column, node and reason, wrap uai's sentinels and carry fault.BadInput.
package bayesnet
