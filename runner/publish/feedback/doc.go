// Package feedback publishes what an agent found on an issue or a pull request: a
// review with findings on lines of the diff, labels of a closed list, or one comment. It
// owns the schema of the object that the agent gives for that, and how its words are
// made harmless.
//
// It knows no agent and no sandbox, and makes no change.
package feedback
