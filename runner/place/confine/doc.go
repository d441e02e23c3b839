// Package confine owns a run's sandboxes: visible and writable files, network, environment, rules
// for the agent's commands, and scripts with their logs. It does not know the commands' purpose,
// the checkout's care, or a change's value.
package confine
