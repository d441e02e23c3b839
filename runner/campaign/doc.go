// Package campaign owns one job over many targets: the targets, frozen in a plan; the ledger of what
// was claimed, spent and settled; and by both which targets may start now. It refuses to know how a
// run works: a wave of targets is handed to whoever runs them, and comes back as reports.
//
// What it reads of targets and reports (names, addresses, messages) was written by strangers, and is
// handed on as text without any meaning.
package campaign
