// Package transcript owns the record of a run: the hash-chained event log on
// disk (Log, Read, VerifyChain), the state of a run folded from its events
// (View), and the text shown of it (Body, Compose, Markdown, Title). It refuses
// to know how a run works, where a pull request goes and what a secret looks
// like; the last comes in as Options.Redact.
//
// Everything in a transcript but the names of events is hostile text. It is
// stored as it was and made harmless where it is shown, by package markdown.
package transcript
