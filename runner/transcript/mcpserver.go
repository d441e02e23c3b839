package transcript

import "slices"

// mcpServer notes what became of a server of tools. Which tools it had stays.
func (f *fold) mcpServer(_ Event, d MCPServer) {
	i := slices.IndexFunc(f.view.MCPServers, func(known MCPServer) bool { return known.Name == d.Name })
	switch {
	case i < 0:
		f.view.MCPServers = append(f.view.MCPServers, d)
	case d.File != "":
		f.view.MCPServers[i] = d
	case d.State != MCPChanged: // which ends nothing
		known := &f.view.MCPServers[i]
		known.State, known.Why, known.Log = d.State, d.Why, d.Log
	}
}
