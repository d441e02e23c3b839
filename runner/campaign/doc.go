// Package campaign owns one job over many targets: the targets frozen in a plan; the ledger of
// claims, spending and results; and the choice of targets to start. It does not know how runs work:
// waves of targets go to a host and return as reports.
//
// All text from targets and reports (names, addresses, messages) comes from strangers and is passed on without interpretation.
package campaign
