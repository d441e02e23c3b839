// Package transcript owns the transcript of a run: the hash-chained event log on disk (Log, Read,
// VerifyChain) and the state folded from its events (View). It does not know how runs work, how
// they are shown, or the form of secrets; Options.Redact removes those.
//
// Everything in a transcript except event names is hostile text. It is stored unchanged and escaped for
// display by package markdown.
package transcript
