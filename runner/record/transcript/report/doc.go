// Package report shows a run as a page for people: one HTML file that needs
// nothing else and asks nothing of any network. It owns what stands on the page,
// how much of each text, and how that looks; it refuses to know how a run works
// and where its files lie, and reads the transcript alone.
//
// All of a transcript is hostile text. It goes into the page as gomponents.Text
// and as values of attributes, which gomponents escapes, its invisible characters
// shown (markdown.Show). Links lead to places of the page, or to addresses that
// transcript.Site made or checked. The page's Content-Security-Policy lets nothing
// load or run but the style and the script that are built in here.
package report
