package reach

import (
	"slices"
	"strings"
)

const thisMachine = "this machine"

// Names that lead to the machine itself, and names of cloud metadata services. Other names with
// local addresses are recognised by address; an upstream proxy, however, resolves names itself.
var (
	ownNames      = []string{"localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback"}
	metadataNames = []string{
		"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.azure.internal",
		"metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com", "rancher-metadata",
	}
)

// UnlistableName describes a name beyond the reach of any list, or returns "". The name is in lower case
// and has no final dot.
func UnlistableName(name string) string {
	switch {
	case slices.Contains(ownNames, name) || strings.HasSuffix(name, ".localhost"):
		return thisMachine
	case slices.Contains(metadataNames, name):
		return "the metadata service of a cloud"
	}
	return ""
}
