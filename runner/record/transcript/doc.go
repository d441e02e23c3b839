// Package transcript owns the events of a run and the state folded from them (View). Package eventlog
// has them on disk. It does not know how runs work, or how they are shown.
//
// Everything in a transcript except event names is hostile text. It is stored unchanged and escaped for
// display by package markdown.
package transcript
