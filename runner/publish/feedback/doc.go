// Package feedback publishes an agent's findings on an issue or pull request: a review with
// findings on lines of the diff, labels from a closed list, or one comment. It owns the schema of
// the agent's object, and escapes its texts.
//
// It knows no agent or sandbox, and changes no file.
package feedback
