// Package egress owns how a run's commands reach hosts: the lists that the proxy enforces, the
// machine's proxy, and the secrets in requests. It records requests and uses of secrets.
package egress
