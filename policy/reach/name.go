package reach

import (
	"slices"
	"strings"
)

const thisMachine = "this machine"

// Names of the machine itself, and of cloud metadata services. Other local names are recognised by
// their addresses. An upstream proxy resolves names itself, so these are refused by name.
var (
	machineNames  = []string{"localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback"}
	metadataNames = []string{
		"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.azure.internal",
		"metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com", "rancher-metadata",
	}
)

// UnlistableName describes a name that no list can open. It returns "" for any other name. name is in
// lower case, without a final dot.
func UnlistableName(name string) string {
	switch {
	case slices.Contains(machineNames, name) || strings.HasSuffix(name, ".localhost"):
		return thisMachine
	case slices.Contains(metadataNames, name):
		return "the metadata service of a cloud"
	}
	return ""
}
