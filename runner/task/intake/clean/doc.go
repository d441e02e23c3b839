// Package clean prepares text of strangers for a model, because a model may follow instructions in
// it. It removes and counts all text hidden from readers of the page, and sets each part between
// unforgeable marks. It knows nothing of GitHub's API, of runs or of trust.
package clean
