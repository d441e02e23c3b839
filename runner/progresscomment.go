package runner

// progressMark begins the comment that shows how far a run is.
const progressMark = "<!-- agent-ci: progress -->\n"
