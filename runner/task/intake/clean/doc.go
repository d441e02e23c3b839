// Package intake prepares text that strangers wrote for a model that takes
// words for orders: what a person who looks at the page cannot see is removed
// and counted, and each part is set between marks that no text can forge. It
// knows nothing of GitHub's API, of runs, or of who is trusted.
package clean
