package main_test

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// feedbackCommands are about what runs say on issues and pull requests.
var feedbackCommands = map[string]func(*testscript.TestScript, bool, []string){
	"reviews": usage("NUMBER", showReviews),
	"labels":  usage("NUMBER", showLabels),
}

// showReviews prints the reviews of a pull request and their comments on lines:
// reviews NUMBER.
func showReviews(ts *testscript.TestScript, args []string) {
	all, onLines := worldOf(ts).repo.Reviews(integer(ts, args[0])), worldOf(ts).repo.ReviewComments(integer(ts, args[0]))
	fmt.Fprintf(ts.Stdout(), "reviews: %d\non lines: %d\n", len(all), len(onLines))
	for _, r := range all {
		fmt.Fprintf(ts.Stdout(), "%s %s %s:\n%s\n", r.Author.Login, r.State, r.CommitID, r.Body)
	}
	for _, c := range onLines {
		fmt.Fprintf(ts.Stdout(), "%s:%d-%d:\n%s\n", c.Path, c.StartLine, c.Line, c.Body)
	}
}

// showLabels prints the labels of an issue: labels NUMBER.
func showLabels(ts *testscript.TestScript, args []string) {
	var names []string
	for _, each := range asked(ts, "issues", args[0])["labels"].([]any) {
		names = append(names, each.(object)["name"].(string))
	}
	fmt.Fprintf(ts.Stdout(), "labels: %s\n", strings.Join(names, " "))
}
