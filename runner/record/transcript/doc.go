// Package transcript owns the record of a run: the hash-chained event log on disk
// (Log, Read, VerifyChain), and what is known of a run, folded from its events
// (View). It refuses to know how a run works, what people are shown of it and what
// a secret looks like; the last comes in as Options.Redact.
//
// Everything in a transcript but the names of events is hostile text. It is
// stored as it was and made harmless where it is shown, by package markdown.
package transcript
