// Package eventlog owns the hash-chained event log of a run on disk: Log, Read, VerifyChain. It does not
// know what events say, or the form of secrets; Options.Redact removes those.
package eventlog
