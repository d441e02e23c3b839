// Package campaign owns one job over many targets. It has the plan of targets, the ledger of claims,
// spending and results, and the choice of targets to start. It does not know how runs work: it gives
// waves of targets to a host and receives reports.
//
// Names, addresses and messages of targets and reports come from strangers. This package passes them on
// without interpreting them.
package campaign
