// Package confine owns a run's sandboxes: visible and writable files, network, environment, rules
// for the agent's commands, and scripts with their logs. It does not know what commands are for,
// how the checkout is managed, or what a change is worth.
package confine
