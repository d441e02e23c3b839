// Package report renders a run as a single HTML page without network access. It owns the content,
// the length of texts, and the look. It only reads the transcript and does not know how runs work
// or where files are.
//
// All text of a transcript is hostile. gomponents escapes it as Text and attribute values, and
// markdown.Show makes invisible characters visible. Links go to places on the page, or to addresses of
// transcript.Site. The Content-Security-Policy only permits the built-in style and script.
package report
