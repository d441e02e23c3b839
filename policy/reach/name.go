package reach

import (
	"slices"
	"strings"
)

const thisMachine = "this machine"

// Names by which a resolver leads to the machine itself, with those that files of hosts
// have for it, and those by which clouds tell their machines secrets. What resolves here
// is found out by its address; a proxy that this one goes through resolves by itself.
var (
	ownNames      = []string{"localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback"}
	metadataNames = []string{
		"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.azure.internal",
		"metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com", "rancher-metadata",
	}
)

// NoName says what a name is, in lower case and without the dot at its end, that no
// list opens; empty for any other name.
func NoName(name string) string {
	switch {
	case slices.Contains(ownNames, name) || strings.HasSuffix(name, ".localhost"):
		return thisMachine
	case slices.Contains(metadataNames, name):
		return "the metadata service of a cloud"
	}
	return ""
}
